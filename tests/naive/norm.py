"""Root-mean-square norms, one line of mathematics each."""

from __future__ import annotations

import numpy as np

from tests.naive.functions import Array, silu


def rms(x: Array, eps: float) -> Array:
    """x [.., n] divided by the root of its mean square, in float64."""
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def rms_norm(x: Array, scale: Array, eps: float) -> Array:
    return (rms(x, eps) * scale).astype(np.float32)


def gated_norm(o: Array, z: Array, scale: Array, eps: float) -> Array:
    """o, z [T, heads * dv]; every head is normed on its own, then gated with silu(z)."""
    rows = o.shape[0]
    heads = rms(o.reshape(rows, -1, scale.size), eps) * scale
    return (heads.reshape(rows, -1) * silu(z)).astype(np.float32)
