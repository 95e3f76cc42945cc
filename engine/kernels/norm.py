"""Root-mean-square norms over rows. All arrays are float32; rows are contiguous, `out` may be `x`."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.lanes import LANES, fma, load, load_first, splat, store, store_first, sum_of_lanes


@njit
def sum_of_squares(address, count):  # type: ignore[no-untyped-def]
    """Σ x² of `count` floats: lane l adds up elements l, l + 16, …; then the tree of `sum_of_lanes`."""
    total = splat(0.0)
    for i in range(0, count - LANES + 1, LANES):
        x = load(address + 4 * i)
        total = fma(x, x, total)
    rest = count % LANES
    if rest:
        x = load_first(address + 4 * (count - rest), rest)
        total = fma(x, x, total)
    return sum_of_lanes(total)


@njit
def inverse_rms(address, count, eps):  # type: ignore[no-untyped-def]
    """1 / sqrt(mean x² + eps)"""
    return np.float32(1.0) / np.sqrt(sum_of_squares(address, count) / np.float32(count) + eps)


@njit
def norm_row(x, scale, count, eps, out):  # type: ignore[no-untyped-def]
    """out = x / rms(x) · scale for one row; all are addresses."""
    factor = splat(inverse_rms(x, count, eps))
    for i in range(0, count - LANES + 1, LANES):
        store(out + 4 * i, load(x + 4 * i) * factor * load(scale + 4 * i))
    rest = count % LANES
    if rest:
        i = 4 * (count - rest)
        store_first(out + i, load_first(x + i, rest) * factor * load_first(scale + i, rest), rest)


@kernel("void(float32[:, ::1], Array(float32, 1, 'C', readonly=True), float32, float32[:, ::1])")
def rms_norm(x, scale, eps, out):  # type: ignore[no-untyped-def]
    """out [T, H] = x [T, H] / sqrt(mean x² + eps) · scale [H]."""
    T, H = x.shape
    if out.shape != x.shape or scale.size != H:
        raise ValueError("rms_norm: x and out are [T, H] and scale is [H]")
    for t in range(T):
        norm_row(x[t].ctypes.data, scale.ctypes.data, H, eps, out[t].ctypes.data)


@kernel("void(float32[:, ::1], float32[:, ::1], Array(float32, 1, 'C', readonly=True), float32, float32[:, ::1])")
def add_rms_norm(residual, y, scale, eps, out):  # type: ignore[no-untyped-def]
    """residual [T, H] += y [T, H], in place; then out = residual / sqrt(mean residual² + eps) · scale."""
    T, H = residual.shape
    if out.shape != residual.shape or y.shape != residual.shape or scale.size != H:
        raise ValueError("add_rms_norm: residual, y and out are [T, H] and scale is [H]")
    for t in range(T):
        for i in range(H):
            residual[t, i] += y[t, i]
        norm_row(residual[t].ctypes.data, scale.ctypes.data, H, eps, out[t].ctypes.data)
