"""Gated attention over a KV cache, for any number of new rows, with grouped query heads.

Softmax is computed online (Milakov and Gimelshein, 2018; Dao et al., FlashAttention, 2022): tile by tile, with the
largest score so far as the reference. Cache rows are also cut into *chunks* whose partial results are merged from the
first to the last, so that a long context can be shared out to more threads than there are heads. Tiles and chunks start
at fixed cache rows: what a row gets depends neither on the other rows of its pass, nor on where the pass began, nor on
threads. Rows that are not stored as float32 are decoded a tile at a time, once for all queries of a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.attention_inputs import attention_inputs
from engine.kernels.attention_tile import (
    QUERIES,
    TILE,
    add_values_of_four,
    add_values_of_one,
    exp_of,
    prefetch_rows,
    scores_of_four,
    scores_of_one,
    weigh,
)
from engine.kernels.compiled import Task, kernel
from engine.kernels.elementary import sigmoid
from engine.kernels.kv_rows import as_floats
from engine.kernels.lanes import LANES, copy_bytes, fma, load, load_float, splat, store, store_float
from engine.kernels.team import argument, run, take_number

if TYPE_CHECKING:
    from engine.kernels.context import ComputeContext
    from engine.kernels.kv_types import KvType

__all__ = ["attention", "attention_inputs"]

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

_CHUNK = 1024  # cache rows
_BLOCK_ROWS = 16  # query rows that share what is read from the cache
_STATE = 16  # bytes per query: largest score, sum of weights, factor, unused
_SMALL_WORK = 1 << 19  # multiplications below which the other threads are not woken

# Arguments of the tasks
(
    _COUNTER, _ITEMS, _Q, _KEYS, _VALUES, _GATES, _OUT, _POSITION, _ROWS, _HEADS, _KV, _HD, _CAPACITY, _CODE,
    _ROW_BYTES, _SPLIT, _PARTIALS, _MEMORY, _MEMORY_STEP, _FIELDS,
) = range(20)  # fmt: skip


@njit(inline="always")
def _chunks(seen):  # type: ignore[no-untyped-def]
    """How many chunks the first `seen` cache rows are cut into."""
    return (seen + _CHUNK - 1) // _CHUNK


@njit(inline="always")
def _load_queries(arguments, kv, first_row, rows, q):  # type: ignore[no-untyped-def]
    """Copy the query vectors of some rows and one kv head to q [rows · group, hd], divided by sqrt(hd)."""
    heads, hd = argument(arguments, _HEADS), argument(arguments, _HD)
    group = heads // argument(arguments, _KV)
    scale = splat(np.float32(1.0) / np.sqrt(np.float32(hd)))
    for m in range(rows * group):
        row, head = first_row + m // group, kv * group + m % group
        source = argument(arguments, _Q) + 4 * hd * (row * heads + head)
        for i in range(0, 4 * hd, 4 * LANES):
            store(q + 4 * hd * m + i, load(source + i) * scale)


@njit(inline="always")
def _attend_tile(arguments, kv, first_row, rows, start, memory, most):  # type: ignore[no-untyped-def]
    """One tile of cache rows from `start` for all query vectors of a block that see any of it."""
    hd, seen = argument(arguments, _HD), argument(arguments, _POSITION) + first_row + 1 - start
    group, width = argument(arguments, _HEADS) // argument(arguments, _KV), 4 * hd
    code, row_bytes = argument(arguments, _CODE), argument(arguments, _ROW_BYTES)
    offset, filled = (kv * argument(arguments, _CAPACITY) + start) * row_bytes, min(TILE, seen + rows - 1)
    sums, scores = memory + most * width, memory + 3 * most * width
    states = scores + most * 4 * TILE
    buffer = states + 2 * most * _STATE
    prefetch_rows(argument(arguments, _VALUES) + offset, filled * row_bytes)
    keys = as_floats(code, argument(arguments, _KEYS) + offset, row_bytes, filled, hd, buffer)
    m = 0
    while m < rows * group:
        count = min(TILE, seen + m // group)
        if count == TILE and m + QUERIES <= rows * group:
            scores_of_four(memory + m * width, width, keys, scores + m * 4 * TILE)
            for i in range(m, m + QUERIES):
                weigh(scores + i * 4 * TILE, TILE, states + i * _STATE)
            m += QUERIES
        else:
            if count > 0:
                scores_of_one(memory + m * width, width, keys, count, scores + m * 4 * TILE)
                weigh(scores + m * 4 * TILE, count, states + m * _STATE)
            m += 1
    values = as_floats(code, argument(arguments, _VALUES) + offset, row_bytes, filled, hd, buffer)
    m = 0
    while m < rows * group:
        count, s, state = min(TILE, seen + m // group), scores + m * 4 * TILE, states + m * _STATE
        if count == TILE and m + QUERIES <= rows * group:
            add_values_of_four(s, values, width, state, _STATE, sums + m * width)
            m += QUERIES
        else:
            if count > 0:
                add_values_of_one(s, values, width, count, state, sums + m * width)
            m += 1


@njit(inline="always")
def _attend_chunk(arguments, kv, first_row, rows, chunk, memory, most):  # type: ignore[no-untyped-def]
    """Fill sums and states of a block with what one chunk of cache rows gives."""
    width = 4 * argument(arguments, _HD)
    queries = rows * (argument(arguments, _HEADS) // argument(arguments, _KV))
    sums, states = memory + most * width, memory + 3 * most * width + most * 4 * TILE
    for i in range(0, queries * width, 4 * LANES):
        store(sums + i, splat(0.0))
    for m in range(queries):
        store_float(states + m * _STATE, np.float32(-np.inf))
        store_float(states + m * _STATE + 4, np.float32(0.0))
    end = min((chunk + 1) * _CHUNK, argument(arguments, _POSITION) + first_row + rows)
    for start in range(chunk * _CHUNK, end, TILE):
        _attend_tile(arguments, kv, first_row, rows, start, memory, most)


@njit
def _merge(sums, state, width, first, into_sums, into_state):  # type: ignore[no-untyped-def]
    """Add the partial result of a chunk to that of the chunks before it."""
    best, total = load_float(state), load_float(state + 4)
    if first:
        for i in range(0, width, 4 * LANES):
            store(into_sums + i, load(sums + i))
    else:
        before = load_float(into_state)
        if not best > before:
            best = before
        old, new = exp_of(before - best), exp_of(load_float(state) - best)
        total = load_float(into_state + 4) * old + total * new
        for i in range(0, width, 4 * LANES):
            store(into_sums + i, fma(load(sums + i), splat(new), load(into_sums + i) * splat(old)))
    store_float(into_state, best)
    store_float(into_state + 4, total)


@njit
def _finish(arguments, row, head, sums, state):  # type: ignore[no-untyped-def]
    """out = sums / sum of weights · sigmoid(gate) for one query vector."""
    hd = argument(arguments, _HD)
    at = row * argument(arguments, _HEADS) + head
    gate, out = argument(arguments, _GATES) + 4 * hd * (2 * at + 1), argument(arguments, _OUT) + 4 * hd * at
    total = splat(load_float(state + 4))
    for i in range(0, 4 * hd, 4 * LANES):
        store(out + i, load(sums + i) / total * sigmoid(load(gate + i)))


@njit(inline="always")
def _run_item(arguments, item, memory, most):  # type: ignore[no-untyped-def]
    """One block of rows and one kv head with all chunks; or, if chunks are shared out, with one of them."""
    kv_heads, position, split = argument(arguments, _KV), argument(arguments, _POSITION), argument(arguments, _SPLIT)
    heads, width = argument(arguments, _HEADS), 4 * argument(arguments, _HD)
    group, kv, turn = heads // kv_heads, item % kv_heads, item // kv_heads
    first_row = 0 if split else turn * _BLOCK_ROWS
    rows = min(_BLOCK_ROWS, argument(arguments, _ROWS) - first_row)
    first, end = (turn, turn + 1) if split else (0, _chunks(position + first_row + rows))
    sums, merged = memory + most * width, memory + 2 * most * width
    states = memory + 3 * most * width + most * 4 * TILE
    merged_states = states + most * _STATE
    _load_queries(arguments, kv, first_row, rows, memory)
    for chunk in range(first, end):
        _attend_chunk(arguments, kv, first_row, rows, chunk, memory, most)
        for m in range(rows * group):
            if chunk < _chunks(position + first_row + m // group + 1):
                _merge(
                    sums + m * width, states + m * _STATE, width, chunk == first,
                    merged + m * width, merged_states + m * _STATE,
                )  # fmt: skip
    for m in range(rows * group):
        row, head = first_row + m // group, kv * group + m % group
        if split:
            slot = argument(arguments, _PARTIALS) + ((first * rows + row) * heads + head) * (width + 4 * LANES)
            copy_bytes(slot, merged + m * width, width)
            copy_bytes(slot + width, merged_states + m * _STATE, _STATE)
        else:
            _finish(arguments, row, head, merged + m * width, merged_states + m * _STATE)


@Task
def _attend(arguments, index, _count):  # type: ignore[no-untyped-def]
    memory = argument(arguments, _MEMORY) + index * argument(arguments, _MEMORY_STEP)
    items = argument(arguments, _ITEMS)
    most = _BLOCK_ROWS * (argument(arguments, _HEADS) // argument(arguments, _KV))
    item = items - 1 - take_number(arguments)  # from the last: later rows see more
    while item >= 0:
        _run_item(arguments, item, memory, most)
        item = items - 1 - take_number(arguments)


@kernel("void(int64[::1])")
def _merge_chunks(fields):  # type: ignore[no-untyped-def]
    """Merge what the tasks left, chunk after chunk, and write the results."""
    arguments = fields.ctypes.data
    rows, heads, width = fields[_ROWS], fields[_HEADS], 4 * fields[_HD]
    step = width + 4 * LANES
    for row in range(rows):
        for head in range(heads):
            into = fields[_PARTIALS] + (row * heads + head) * step
            for chunk in range(1, _chunks(fields[_POSITION] + row + 1)):
                slot = fields[_PARTIALS] + ((chunk * rows + row) * heads + head) * step
                _merge(slot, slot + width, width, False, into, into + width)
            _finish(arguments, row, head, into, into + width)


_IN_2D, _IN_3D = "Array(float32, 2, 'C', readonly=True)", "Array(float32, 3, 'C', readonly=True)"
_CACHE = "Array(uint8, 3, 'C', readonly=True)"


@kernel(
    f"void(int64[::1], {_IN_3D}, {_CACHE}, {_CACHE}, int64, int64, int64, {_IN_2D}, float32[:, ::1], int64, "
    "uint8[::1], int64)"
)
def _pack(arguments, q, keys, values, code, row_bytes, position, qg, out, items, memory, memory_step):  # type: ignore[no-untyped-def]
    """Check the shapes and write the tasks' arguments; memory: partial results, if any, then that of each task."""
    T, heads, hd = q.shape
    kv, capacity, width = keys.shape
    if values.shape != keys.shape or width != row_bytes or heads % kv or hd % LANES:
        raise ValueError(
            "attention: q is [T, heads, hd] and the caches [kv, capacity, row bytes], with hd a multiple of 16"
        )
    if position < 0 or position + T > capacity:
        raise ValueError("attention: the caches have no rows position to position + T")
    if qg.shape != (T, heads * 2 * hd) or out.shape != (T, heads * hd):
        raise ValueError("attention: qg is [T, heads 2 hd] and out [T, heads hd]")
    arguments[_COUNTER] = 0
    arguments[_Q], arguments[_KEYS], arguments[_VALUES] = q.ctypes.data, keys.ctypes.data, values.ctypes.data
    arguments[_GATES], arguments[_OUT], arguments[_POSITION] = qg.ctypes.data, out.ctypes.data, position
    arguments[_ROWS], arguments[_HEADS], arguments[_KV], arguments[_HD] = T, heads, kv, hd
    arguments[_CAPACITY], arguments[_ITEMS] = capacity, abs(items)
    arguments[_SPLIT], arguments[_CODE], arguments[_ROW_BYTES] = items < 0, code, row_bytes
    partials = (_chunks(position + T) * T * heads * (4 * hd + 4 * LANES)) if items < 0 else 0
    arguments[_PARTIALS], arguments[_MEMORY] = memory.ctypes.data, memory.ctypes.data + partials
    arguments[_MEMORY_STEP] = memory_step


def attention(
    context: ComputeContext,
    q: Floats,
    keys: Bytes,
    values: Bytes,
    kind: KvType,
    position: int,
    qg: Floats,
    out: Floats,
) -> None:
    """out [T, heads · hd] = softmax(q · Kᵀ / sqrt(hd)) · V · sigmoid(gate); row t sees cache rows 0…position + t.

    q: [T, heads, hd], normed and rotated. keys, values: caches [kv, capacity, row bytes] whose rows are stored as
    `kind` says; those before position + T are filled. Query head h uses kv head h // (heads / kv). qg: [T, heads · 2
    hd], [query | gate] per head, of which the gate is used. hd is a multiple of 16.
    """
    T, heads, hd = q.shape
    kv = keys.shape[0]
    if T == 0:
        return
    seen = position + T
    blocks, chunks = -(-T // _BLOCK_ROWS), -(-seen // _CHUNK)
    threads = context.threads if T * heads * hd * seen >= _SMALL_WORK else 1
    split = blocks == 1 and chunks > 1 and threads > 1
    items = kv * (chunks if split else blocks)
    threads = min(threads, items)
    step = _BLOCK_ROWS * (heads // kv) * (3 * 4 * hd + 4 * TILE + 2 * _STATE) + 4 * TILE * hd
    partials = chunks * T * heads * (4 * hd + 4 * LANES) if split else 0
    arguments = context.plan(_FIELDS)
    memory = context.scratch(partials + threads * step)
    row_bytes = kind.row_bytes(hd)
    _pack(
        arguments, q, keys, values, kind.code, row_bytes, position, qg, out, -items if split else items, memory, step
    )  # fmt: skip
    run(_attend, arguments, threads)
    if split:
        _merge_chunks(arguments)
