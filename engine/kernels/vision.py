"""Elementwise kernels of the vision tower. All arrays are float32 and C-contiguous."""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.compiled import kernel


@kernel("void(float32[:, ::1], float32[::1], float32[::1], float32, float32[:, ::1])")
def layer_norm(x, scale, bias, eps, out):  # type: ignore[no-untyped-def]
    """out = (x − mean) / sqrt(variance + eps) · scale + bias, per row of x [T, H]."""
    rows, width = x.shape
    for t in range(rows):
        total = 0.0
        for i in range(width):
            total += x[t, i]
        mean = np.float32(total / width)
        squares = 0.0
        for i in range(width):
            d = x[t, i] - mean
            squares += d * d
        factor = np.float32(1.0 / math.sqrt(squares / width + eps))
        for i in range(width):
            out[t, i] = (x[t, i] - mean) * factor * scale[i] + bias[i]


@kernel("void(float32[:, ::1], float32[::1])")
def add_bias(x, bias):  # type: ignore[no-untyped-def]
    """x [T, N] += bias [N], in place."""
    for t in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[t, i] += bias[i]


@kernel("void(float32[:, ::1], float32[::1])")
def bias_gelu_tanh(x, bias):  # type: ignore[no-untyped-def]
    """x = gelu(x + bias) in its tanh form, in place (Hendrycks, Gimpel 2016)."""
    for t in range(x.shape[0]):
        for i in range(x.shape[1]):
            v = np.float64(x[t, i] + bias[i])
            x[t, i] = np.float32(0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))


@kernel("void(float32[:, ::1], float32[::1])")
def bias_gelu_erf(x, bias):  # type: ignore[no-untyped-def]
    """x = gelu(x + bias) = (x + bias) · Φ(x + bias), in place."""
    for t in range(x.shape[0]):
        for i in range(x.shape[1]):
            v = np.float64(x[t, i] + bias[i])
            x[t, i] = np.float32(0.5 * v * (1.0 + math.erf(v * 0.7071067811865476)))
