"""Which experts a token goes to."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.softmax import exponentials, largest

_TAKEN = np.float32(-1.0)


@njit
def _largest_left(row):  # type: ignore[no-untyped-def]
    """The first of the largest numbers that are not taken; NaN counts as the smallest."""
    best = -1
    for i in range(row.size):
        if row[i] != _TAKEN and (best < 0 or row[i] > row[best] or (np.isnan(row[best]) and not np.isnan(row[i]))):
            best = i
    return best


@kernel("void(Array(float32, 2, 'C', readonly=True), int64, int64[:, ::1], float32[:, ::1])")
def route(logits, k, ids, weights):  # type: ignore[no-untyped-def]
    """Softmax over all experts, the k largest, renormalised.

    logits [T, E] → ids [T, k], largest first, equal ones by id; weights [T, k], which add up to 1. If a number of a row
    is NaN, all its weights are.
    """
    T, E = logits.shape
    if k < 1 or k > E or ids.shape != (T, k) or weights.shape != (T, k):
        raise ValueError("route: logits is [T, E], ids and weights are [T, k], with 1 <= k <= E")
    row = np.empty(E, np.float32)
    for t in range(T):
        address = logits.ctypes.data + 4 * E * t
        total = np.float32(exponentials(address, E, largest(address, E), np.float32(1.0), row.ctypes.data))
        chosen = np.float32(0.0)
        for rank in range(k):
            best = _largest_left(row)
            ids[t, rank] = best
            weights[t, rank] = row[best] / total  # NaN if any is
            chosen += weights[t, rank]
            row[best] = _TAKEN
        for rank in range(k):
            weights[t, rank] /= chosen
