"""Activations as the kernels want them: padded, in the order of the weights, or quantised."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit("void(float32[:, ::1], float32[:, ::1])", nogil=True, cache=True)
def pad_rows(x, out):  # type: ignore[no-untyped-def]
    """out [T, K'] = x [T, K] and zeros."""
    T, K = x.shape
    for t in range(T):
        for i in range(K):
            out[t, i] = x[t, i]
        for i in range(K, out.shape[1]):
            out[t, i] = np.float32(0)


@njit("void(float32[:, ::1], float32[:, ::1])", nogil=True, cache=True)
def split_even_odd(x, out):  # type: ignore[no-untyped-def]
    """out [T, K'] = x [T, K] and zeros, each 32 columns as [16 even | 16 odd]."""
    T, K = x.shape
    whole = K // 32 * 32
    for t in range(T):
        for start in range(0, whole, 32):
            for i in range(16):
                out[t, start + i] = x[t, start + 2 * i]
                out[t, start + 16 + i] = x[t, start + 2 * i + 1]
        for i in range(whole, out.shape[1]):
            out[t, i] = np.float32(0)
        for i in range(whole, K):
            out[t, whole + (i - whole) // 2 + 16 * (i % 2)] = x[t, i]
