"""Attention of some query vectors over sixteen rows of a KV cache: the inner step of `attention`.

Queries, scores and weighted sums are kept at addresses. A *tile* is sixteen consecutive cache rows that start at a
multiple of sixteen, so that the scores of a query in a tile are one value of sixteen lanes. Functions for four queries
do for each what those for one do, in the same order, so that both give the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.elementary import exp
from engine.kernels.lanes import (
    LANES,
    fma,
    keep_first,
    lane,
    largest_lane,
    load,
    load_float,
    prefetch,
    splat,
    splat_from,
    store,
    store_float,
    sum_of_lanes,
)

TILE = LANES
QUERIES = 4  # that share what is read from the cache


@njit
def prefetch_rows(address, nbytes):  # type: ignore[no-untyped-def]
    """Ask for the cache lines of a tile of values while its keys are worked on."""
    for i in range(0, nbytes, 64):
        prefetch(address + i)


@njit
def scores_of_four(q, width, keys, scores):  # type: ignore[no-untyped-def]
    """scores [4, 16] = q [4, hd] · keys [16, hd]; width is 4 · hd bytes."""
    for j in range(TILE):
        key = keys + j * width
        s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for i in range(0, width, 4 * LANES):
            x = load(key + i)
            s0 = fma(load(q + i), x, s0)
            s1 = fma(load(q + width + i), x, s1)
            s2 = fma(load(q + 2 * width + i), x, s2)
            s3 = fma(load(q + 3 * width + i), x, s3)
        out = scores + 4 * j
        store_float(out, sum_of_lanes(s0))
        store_float(out + 4 * TILE, sum_of_lanes(s1))
        store_float(out + 8 * TILE, sum_of_lanes(s2))
        store_float(out + 12 * TILE, sum_of_lanes(s3))


@njit
def scores_of_one(q, width, keys, count, scores):  # type: ignore[no-untyped-def]
    """The first `count` of scores [16] = q [hd] · keys [count, hd]."""
    j = 0
    while j + 4 <= count:
        key = keys + j * width
        s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for i in range(0, width, 4 * LANES):
            x = load(q + i)
            s0 = fma(x, load(key + i), s0)
            s1 = fma(x, load(key + width + i), s1)
            s2 = fma(x, load(key + 2 * width + i), s2)
            s3 = fma(x, load(key + 3 * width + i), s3)
        store_float(scores + 4 * j, sum_of_lanes(s0))
        store_float(scores + 4 * j + 4, sum_of_lanes(s1))
        store_float(scores + 4 * j + 8, sum_of_lanes(s2))
        store_float(scores + 4 * j + 12, sum_of_lanes(s3))
        j += 4
    while j < count:
        total = splat(0.0)
        for i in range(0, width, 4 * LANES):
            total = fma(load(q + i), load(keys + j * width + i), total)
        store_float(scores + 4 * j, sum_of_lanes(total))
        j += 1


@njit
def exp_of(x):  # type: ignore[no-untyped-def]
    """exp of a single number."""
    return lane(exp(splat(x)), 0)


@njit
def weigh(scores, count, state):  # type: ignore[no-untyped-def]
    """Scores become weights exp(s − largest so far), zero beyond `count`.

    state: [largest score so far, sum of weights so far, factor for what was summed up before this tile].
    """
    s = keep_first(load(scores), count, -np.inf)
    before = load_float(state)
    best = largest_lane(s)
    if not best > before:  # also when the scores are NaN, which then reach the sum
        best = before
    factor = np.float32(1.0) if best == before else exp_of(before - best)
    weights = exp(s - splat(best))
    store(scores, weights)
    store_float(state, best)
    store_float(state + 4, load_float(state + 4) * factor + sum_of_lanes(weights))
    store_float(state + 8, factor)


@njit
def add_values_of_four(scores, values, width, states, state_step, sums):  # type: ignore[no-untyped-def]
    """sums [4, hd] = sums · factor + weights [4, 16] · values [16, hd]."""
    f0, f1 = splat_from(states + 8), splat_from(states + state_step + 8)
    f2, f3 = splat_from(states + 2 * state_step + 8), splat_from(states + 3 * state_step + 8)
    for i in range(0, width, 4 * LANES):
        at = sums + i
        a0, a1 = load(at) * f0, load(at + width) * f1
        a2, a3 = load(at + 2 * width) * f2, load(at + 3 * width) * f3
        for j in range(TILE):
            x, weight = load(values + j * width + i), scores + 4 * j
            a0 = fma(splat_from(weight), x, a0)
            a1 = fma(splat_from(weight + 4 * TILE), x, a1)
            a2 = fma(splat_from(weight + 8 * TILE), x, a2)
            a3 = fma(splat_from(weight + 12 * TILE), x, a3)
        store(at, a0)
        store(at + width, a1)
        store(at + 2 * width, a2)
        store(at + 3 * width, a3)


@njit
def add_values_of_one(scores, values, width, count, state, sums):  # type: ignore[no-untyped-def]
    """sums [hd] = sums · factor + weights [count] · values [count, hd]."""
    factor = splat_from(state + 8)
    for i in range(0, width, 4 * LANES):
        total = load(sums + i) * factor
        for j in range(count):
            total = fma(splat_from(scores + 4 * j), load(values + j * width + i), total)
        store(sums + i, total)
