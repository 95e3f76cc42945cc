"""Gated DeltaNet, one token and one head at a time, in float64."""

from __future__ import annotations

import numpy as np

from tests.naive.functions import Array, sigmoid, silu, softplus


def causal_conv_silu(inputs: Array, weight: Array) -> Array:
    """inputs [(K-1)+T, C], weight [C, K] → [T, C]; tap K-1 is the current row."""
    taps = weight.shape[1]
    rows = inputs.shape[0] - taps + 1
    x, w = inputs.astype(np.float64), weight.astype(np.float64)
    total = sum((x[j : j + rows] * w[:, j] for j in range(taps)), np.zeros((rows, weight.shape[0])))
    return silu(total).astype(np.float32)


def delta_gates(a: Array, b: Array, decay_rate: Array, dt_bias: Array) -> tuple[Array, Array]:
    g = -decay_rate.astype(np.float64) * softplus(a.astype(np.float64) + dt_bias)
    return g.astype(np.float32), sigmoid(b).astype(np.float32)


def delta_rule(state: Array, qkv: Array, g: Array, beta: Array, k_head: Array) -> tuple[Array, Array]:
    """state [nv, dk, dv] → (new state, out [T, nv * dv]). S = exp(g) S; d = beta (v − Sᵀk); S += k dᵀ; o = Sᵀq."""
    nv, dk, dv = state.shape
    rows = qkv.shape[0]
    k_width = (qkv.shape[1] - nv * dv) // 2
    q_all, k_all, v_all = np.split(qkv.astype(np.float64), [k_width, 2 * k_width], axis=1)
    s, out = state.astype(np.float64), np.zeros((rows, nv, dv))
    for t in range(rows):
        for h in range(nv):
            columns = slice(k_head[h] * dk, (k_head[h] + 1) * dk)
            q, k = q_all[t, columns], k_all[t, columns]
            q = q / np.sqrt((q * q).sum() + 1e-6) / np.sqrt(dk)
            k = k / np.sqrt((k * k).sum() + 1e-6)
            s[h] *= np.exp(np.float64(g[t, h]))
            d = beta[t, h] * (v_all[t, h * dv : (h + 1) * dv] - s[h].T @ k)
            s[h] += np.outer(k, d)
            out[t, h] = s[h].T @ q
    return s.astype(np.float32), out.reshape(rows, -1).astype(np.float32)
