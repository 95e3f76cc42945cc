"""Softmax over a row of any length, at addresses, for the kernels that need one."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.elementary import exp
from engine.kernels.lanes import (
    LANES,
    keep_first,
    larger,
    largest_lane,
    load,
    load_first,
    splat,
    store,
    store_first,
    sum_of_lanes,
)

_BLOCK = 1024  # numbers that a lane-wise float32 sum may hold before it goes over to float64


@njit
def largest(address, count):  # type: ignore[no-untyped-def]
    """The largest of `count` floats, passing over NaN; −inf if there is none."""
    best = splat(-np.inf)
    rest = count % LANES
    for i in range(0, 4 * (count - rest), 4 * LANES):
        best = larger(best, load(address + i))
    if rest:
        i = 4 * (count - rest)
        best = larger(best, keep_first(load_first(address + i, rest), rest, -np.inf))
    return largest_lane(best)


@njit
def exponentials(address, count, shift, factor, out):  # type: ignore[no-untyped-def]
    """out = exp((x − shift) · factor) for `count` floats, unless `out` is 0; returns their sum as float64."""
    sum_all = 0.0
    for start in range(0, count, _BLOCK):
        end = min(start + _BLOCK, count)
        total = splat(0.0)
        rest = (end - start) % LANES
        for i in range(4 * start, 4 * (end - rest), 4 * LANES):
            power = exp((load(address + i) - splat(shift)) * splat(factor))
            total += power
            if out:
                store(out + i, power)
        if rest:
            i = 4 * (end - rest)
            power = exp((load_first(address + i, rest) - splat(shift)) * splat(factor))
            total += keep_first(power, rest, 0.0)
            if out:
                store_first(out + i, power, rest)
        sum_all += np.float64(sum_of_lanes(total))
    return sum_all


@njit
def divide(address, count, divisor):  # type: ignore[no-untyped-def]
    """x = x / divisor for `count` floats."""
    rest = count % LANES
    for i in range(0, 4 * (count - rest), 4 * LANES):
        store(address + i, load(address + i) / splat(divisor))
    if rest:
        i = 4 * (count - rest)
        store_first(address + i, load_first(address + i, rest) / splat(divisor), rest)
