"""Over one row of logits, float32 [V]: the largest, the k largest, softmax, and whether all are finite numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.lanes import (
    LANES,
    any_greater,
    fma,
    load,
    load_first,
    splat,
    sum_of_lanes,
)
from engine.kernels.softmax import divide, exponentials, largest

_BLOCK = 1024
_HEAP_LIMIT = 256
_ROW = "Array(float32, 1, 'C', readonly=True)"


@kernel(f"int64({_ROW})")
def argmax(row):  # type: ignore[no-untyped-def]
    """Index of the first largest number; NaN is passed over. −1 if there is no number."""
    best_block, best = -1, np.float32(-np.inf)
    for start in range(0, row.size, _BLOCK):
        count = min(_BLOCK, row.size - start)
        block = largest(row.ctypes.data + 4 * start, count)
        if block > best:
            best_block, best = start, block
    # Without a number above −inf, the first −inf is the largest.
    for i in range(max(best_block, 0), row.size):
        if row[i] == best:
            return i
    return -1


@kernel(f"boolean({_ROW})")
def all_finite(row):  # type: ignore[no-untyped-def]
    """Whether no number is NaN or infinite."""
    nothing = splat(0.0)  # 0 · x is 0, or NaN
    address, rest = row.ctypes.data, row.size % LANES
    for i in range(0, 4 * (row.size - rest), 4 * LANES):
        nothing = fma(load(address + i), splat(0.0), nothing)
    if rest:
        nothing = fma(load_first(address + 4 * (row.size - rest), rest), splat(0.0), nothing)
    return sum_of_lanes(nothing) == 0.0


@kernel(f"void({_ROW}, float32[::1], float32)")
def softmax(row, out, temperature):  # type: ignore[no-untyped-def]
    """out = exp(row / temperature) / Σ exp(row / temperature); temperature is positive. `out` may be `row`."""
    if out.size != row.size:
        raise ValueError("softmax: row and out have one length")
    factor = np.float32(1.0) / temperature
    total = exponentials(row.ctypes.data, row.size, largest(row.ctypes.data, row.size), factor, out.ctypes.data)
    divide(out.ctypes.data, row.size, np.float32(total))


@kernel(f"float64({_ROW}, float32)")
def log_sum_exp(row, temperature):  # type: ignore[no-untyped-def]
    """log Σ exp(row / temperature): log-probability of id i is row[i] / temperature minus this."""
    factor = np.float32(1.0) / temperature
    best = largest(row.ctypes.data, row.size)
    return np.log(exponentials(row.ctypes.data, row.size, best, factor, 0)) + np.float64(best) * np.float64(factor)


# ---- the k largest ----


@njit
def _worse(values, ids, i, j):  # type: ignore[no-untyped-def]
    """Whether entry i comes after entry j: a smaller value, or the same and a larger id."""
    return values[i] < values[j] or (values[i] == values[j] and ids[i] > ids[j])


@njit
def _sift_down(values, ids, start, size):  # type: ignore[no-untyped-def]
    """Restore the heap whose root is its worst entry, after entry `start` was replaced."""
    at = start
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(values, ids, child + 1, child):
            child += 1
        if not _worse(values, ids, child, at):
            return
        values[at], values[child] = values[child], values[at]
        ids[at], ids[child] = ids[child], ids[at]
        at = child


@kernel(f"int64({_ROW}, int64[::1], float32[::1])")
def _select_largest(row, ids, values):  # type: ignore[no-untyped-def]
    """Fill ids and values [k] with the k largest, best first; returns how many there are."""
    k = ids.size
    found, i = 0, 0
    while i < row.size and found < k:
        if not np.isnan(row[i]):
            ids[found], values[found] = i, row[i]
            found += 1
        i += 1
    for start in range(found // 2 - 1, -1, -1):
        _sift_down(values, ids, start, found)
    if found == k:
        # Later ids must be larger than the worst entry to get in: sixteen at a time mostly are not.
        while i < row.size:
            if i + LANES <= row.size and not any_greater(load(row.ctypes.data + 4 * i), splat(values[0])):
                i += LANES
                continue
            for j in range(i, min(i + LANES, row.size)):
                if row[j] > values[0]:
                    ids[0], values[0] = j, row[j]
                    _sift_down(values, ids, 0, k)
            i += LANES
    for size in range(found - 1, 0, -1):  # the worst goes to the end, again and again
        values[0], values[size] = values[size], values[0]
        ids[0], ids[size] = ids[size], ids[0]
        _sift_down(values, ids, 0, size)
    return found


def _many_largest(row: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    negated = np.negative(row)
    k = min(k, row.size - int(np.isnan(row).sum()))
    if k == 0:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    limit = np.partition(negated, k - 1)[k - 1]  # NaN counts as the largest: it comes last
    ids = np.flatnonzero(negated <= limit)
    ids = ids[np.argsort(negated[ids], kind="stable")[:k]]
    return ids, row[ids]


def top_k(row: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Ids and values of the k largest numbers, largest first, equal ones by id; NaN is passed over.

    A few come out of one pass over the row with a heap; for many, what reaches the k-th largest is picked and sorted.
    """
    k = max(0, min(k, row.size))
    if k > _HEAP_LIMIT:
        return _many_largest(row, k)
    ids, values = np.empty(k, np.int64), np.empty(k, np.float32)
    found = _select_largest(row, ids, values) if k else 0
    return ids[:found], values[:found]
