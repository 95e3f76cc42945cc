"""Gated attention with all scores at once, in float64."""

from __future__ import annotations

import numpy as np

from tests.naive.functions import Array, sigmoid, softmax
from tests.naive.norm import rms


def rope_tables(
    positions: Array, rotary_dim: int, theta: float, sections: tuple[int, ...] | None = None
) -> tuple[Array, Array]:
    """cos and sin [T, rotary_dim / 2] of float32 angles, one position and one frequency after the other."""
    axes = positions if positions.ndim == 2 else np.stack([positions] * 3)
    half, rows = rotary_dim // 2, axes.shape[1]
    cos, sin = np.empty((rows, half), np.float32), np.empty((rows, half), np.float32)
    for t in range(rows):
        for i in range(half):
            axis = 0
            if sections is not None and i % 3 == 1 and i < 3 * sections[1]:
                axis = 1
            if sections is not None and i % 3 == 2 and i < 3 * sections[2]:
                axis = 2
            frequency = np.float32(1.0 / theta ** (2 * i / rotary_dim))
            angle = float(np.float32(axes[axis, t]) * frequency)
            cos[t, i], sin[t, i] = np.cos(angle), np.sin(angle)
    return cos, sin


def rotate(x: Array, cos: Array, sin: Array) -> Array:
    """x [T, heads, hd]: rotate-half on the first 2 * cos.shape[1] dimensions."""
    half = cos.shape[1]
    c, s = cos[:, None].astype(np.float64), sin[:, None].astype(np.float64)
    out = x.astype(np.float64)
    first, second = out[..., :half].copy(), out[..., half : 2 * half].copy()
    out[..., :half] = first * c - second * s
    out[..., half : 2 * half] = second * c + first * s
    return out


def attention_inputs(
    qg: Array, k: Array, v: Array, q_scale: Array, k_scale: Array, eps: float, cos: Array, sin: Array
) -> tuple[Array, Array, Array]:
    """q [T, heads, hd], k and v [T, kv, hd]: normed and rotated."""
    rows, hd = qg.shape[0], q_scale.size
    q = rotate(rms(qg.reshape(rows, -1, 2, hd)[:, :, 0], eps) * q_scale, cos, sin)
    keys = rotate(rms(k.reshape(rows, -1, hd), eps) * k_scale, cos, sin)
    return q.astype(np.float32), keys.astype(np.float32), v.reshape(rows, -1, hd)


def attention(q: Array, k_cache: Array, v_cache: Array, position: int, qg: Array) -> Array:
    """q [T, heads, hd] at positions `position`…; row t sees cache rows 0…position + t → [T, heads * hd]."""
    rows, heads, hd = q.shape
    group = heads // k_cache.shape[0]
    gate = qg.reshape(rows, heads, 2, hd)[:, :, 1]
    out = np.zeros((rows, heads, hd), np.float64)
    for t in range(rows):
        seen = position + t + 1
        for h in range(heads):
            keys = k_cache[h // group, :seen].astype(np.float64)
            values = v_cache[h // group, :seen].astype(np.float64)
            p = softmax(keys @ q[t, h].astype(np.float64) * hd**-0.5)
            out[t, h] = p @ values * sigmoid(gate[t, h])
    return out.reshape(rows, -1).astype(np.float32)
