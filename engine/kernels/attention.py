"""Gated attention."""

from __future__ import annotations

import numpy as np


def _norm_rotate(x, scale, eps, cos, sin):
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * scale
    half = cos.shape[1]
    a, b = x[..., :half].copy(), x[..., half : 2 * half].copy()
    x[..., :half] = a * cos[:, None] - b * sin[:, None]
    x[..., half : 2 * half] = b * cos[:, None] + a * sin[:, None]
    return x


def attention_inputs(qg, k, v, q_scale, k_scale, eps, cos, sin, position, q_out, k_cache, v_cache):
    rows, hd = qg.shape[0], q_scale.size
    q_out[:] = _norm_rotate(qg.reshape(rows, -1, 2, hd)[:, :, 0], q_scale, eps, cos, sin)
    keys = _norm_rotate(k.reshape(rows, -1, hd), k_scale, eps, cos, sin)
    k_cache[:, position : position + rows] = keys.transpose(1, 0, 2)
    v_cache[:, position : position + rows] = v.reshape(rows, -1, hd).transpose(1, 0, 2)


def attention(context, q, k_cache, v_cache, position, qg, out):
    rows, heads, hd = q.shape
    group = heads // k_cache.shape[0]
    gate = qg.reshape(rows, heads, 2, hd)[:, :, 1]
    for t in range(rows):
        n = position + t + 1
        for h in range(heads):
            s = k_cache[h // group, :n] @ q[t, h] * np.float32(hd**-0.5)
            p = np.exp(s - s.max())
            o = (p / p.sum()) @ v_cache[h // group, :n]
            out[t, h * hd : (h + 1) * hd] = o / (1 + np.exp(-gate[t, h]))
