"""Gated DeltaNet."""

from __future__ import annotations

import numpy as np


def delta_gates(a, b, decay_rate, dt_bias, g_out, beta_out):
    g_out[:] = -decay_rate * np.logaddexp(0, a + dt_bias)
    beta_out[:] = 1 / (1 + np.exp(-b))


def _run(state_in, state_out, qkv, g, beta, k_head, count, out):
    nv, dk, dv = state_in.shape
    kw = (qkv.shape[1] - nv * dv) // 2
    if state_in is not state_out:
        state_out[:] = state_in
    for t in range(count):
        for h in range(nv):
            c = k_head[h] * dk
            q, k, v = qkv[t, c : c + dk], qkv[t, kw + c : kw + c + dk], qkv[t, 2 * kw + h * dv : 2 * kw + (h + 1) * dv]
            q = q / np.sqrt((q * q).sum() + np.float32(1e-6)) * np.float32(dk**-0.5)
            k = k / np.sqrt((k * k).sum() + np.float32(1e-6))
            s = state_out[h]
            s *= np.exp(g[t, h])
            s += np.outer(k, beta[t, h] * (v - k @ s))
            if out is not None:
                out[t, h * dv : (h + 1) * dv] = q @ s


def delta_rule(context, state_in, state_out, qkv, g, beta, k_head, out):
    _run(state_in, state_out, qkv, g, beta, k_head, len(qkv), out)


def delta_replay(context, state_in, state_out, qkv, g, beta, k_head, count):
    _run(state_in, state_out, qkv, g, beta, k_head, count, None)


def gated_norm(o, z, scale, eps, out):
    x = o.reshape(len(o), -1, scale.size)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * scale
    out[:] = x.reshape(o.shape) * (z / (1 + np.exp(-z)))
