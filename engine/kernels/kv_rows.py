"""Rows of a KV cache, from float32 to what they are stored as and back.

What is decoded is a float32 number that the stored bits define exactly, so attention over any type of cache is, to the
bit, attention over a float32 cache of the decoded numbers. Rounding is to nearest, ties to even, one row at a time: a
stored row depends on nothing but the row.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types

from engine.kernels import simd
from engine.kernels.compiled import kernel
from engine.kernels.kv_types import BF16, BLOCK, F32
from engine.kernels.lanes import (
    LANES,
    Lanes,
    copy_bytes,
    emitted,
    larger,
    largest_lane,
    load,
    splat,
    splat_from,
    store,
    store_float,
    sum_of_lanes,
)
from engine.kernels.simd import I8, I16, I32, Builder, Value

_LARGEST = np.float32(127)
_SMALLEST = np.finfo(np.float32).tiny  # of a factor; blocks of smaller numbers are stored as zeros
_ROUNDER = 12582912.0  # 1.5 · 2²³: adding it rounds to an integer, which then stands in the low bits


@emitted(Lanes, types.intp)
def load_bfloat16(b: Builder, address: Value) -> Value:
    """Sixteen bfloat16 numbers from `address`."""
    bits = b.zext(simd.load(b, address, simd.vector(I16, LANES), 2), simd.vector(I32, LANES))
    return simd.reinterpret(b, b.shl(bits, simd.filled(I32, LANES, 16)), simd.F32, LANES)


@emitted(types.void, types.intp, Lanes)
def store_bfloat16(b: Builder, address: Value, value: Value) -> None:
    """Sixteen numbers as bfloat16 to `address`, rounded to nearest, ties to even; NaN stays NaN."""
    bits = simd.reinterpret(b, value, I32, LANES)
    sixteen = simd.filled(I32, LANES, 16)
    odd = b.and_(b.lshr(bits, sixteen), simd.filled(I32, LANES, 1))
    rounded = b.add(bits, b.add(odd, simd.filled(I32, LANES, 0x7FFF)))
    quiet = b.or_(bits, simd.filled(I32, LANES, 0x400000))
    bits = b.select(b.fcmp_unordered("uno", value, value), quiet, rounded)
    simd.store(b, b.trunc(b.lshr(bits, sixteen), simd.vector(I16, LANES)), address, 2)


@emitted(Lanes, types.intp)
def load_bytes(b: Builder, address: Value) -> Value:
    """Sixteen signed bytes from `address`."""
    quants = b.sext(simd.load(b, address, simd.vector(I8, LANES)), simd.vector(I32, LANES))
    return simd.to_float(b, quants)


@emitted(types.void, types.intp, Lanes)
def store_bytes(b: Builder, address: Value, value: Value) -> None:
    """Sixteen numbers −128…127 as signed bytes to `address`, rounded to nearest, ties to even."""
    shifted = b.fadd(value, simd.filled(simd.F32, LANES, _ROUNDER))
    simd.store(b, b.trunc(simd.reinterpret(b, shifted, I32, LANES), simd.vector(I8, LANES)), address)


@emitted(Lanes, Lanes)
def magnitude(b: Builder, value: Value) -> Value:
    """|value|, lane by lane."""
    bits = b.and_(simd.reinterpret(b, value, I32, LANES), simd.filled(I32, LANES, 0x7FFFFFFF))
    return b.bitcast(bits, ir.VectorType(simd.F32, LANES))


@njit
def _encode_block(source, quants, factor_at):  # type: ignore[no-untyped-def]
    """32 numbers as bytes and a factor, the largest magnitude / 127; NaN or infinity among them makes all 32 NaN."""
    first, second = load(source), load(source + 4 * LANES)
    most = largest_lane(larger(magnitude(first), magnitude(second)))
    faults = sum_of_lanes((first - first) + (second - second))  # 0, or NaN if one of them is not finite
    factor = most / _LARGEST + faults
    if factor >= _SMALLEST:
        store_bytes(quants, first / splat(factor))
        store_bytes(quants + LANES, second / splat(factor))
    else:
        store_bytes(quants, splat(0.0))
        store_bytes(quants + LANES, splat(0.0))
        if factor < _SMALLEST:
            factor = np.float32(0.0)
    store_float(factor_at, factor)


@njit
def encode_row(code, source, size, target):  # type: ignore[no-untyped-def]
    """Store `size` floats at `source` as one row of a cache; `code` says as what (`engine.kernels.kv_types`)."""
    if code == F32:
        copy_bytes(target, source, 4 * size)
    elif code == BF16:
        for i in range(0, size, LANES):
            store_bfloat16(target + 2 * i, load(source + 4 * i))
    else:
        for i in range(0, size, BLOCK):
            _encode_block(source + 4 * i, target + i, target + size + i // BLOCK * 4)


@kernel("void(int64, Array(float32, 2, 'C', readonly=True), uint8[:, ::1])")
def encode_rows(code, rows, out):  # type: ignore[no-untyped-def]
    """Store rows [n, size] as rows of a cache [n, row bytes]."""
    if len(out) != len(rows) or rows.shape[1] % LANES:
        raise ValueError("encode_rows: as many rows in as out, of a multiple of 16 numbers")
    for i in range(len(rows)):
        encode_row(code, rows[i].ctypes.data, rows.shape[1], out[i].ctypes.data)


@njit
def as_floats(code, rows, row_bytes, count, size, buffer):  # type: ignore[no-untyped-def]
    """Address of `count` rows of `size` floats: the cache's own where it holds such, else `buffer`, which is filled."""
    if code == F32:
        return rows
    if code == BF16:
        for i in range(0, count * size, LANES):
            store(buffer + 4 * i, load_bfloat16(rows + 2 * i))
        return buffer
    for j in range(count):
        row, out = rows + j * row_bytes, buffer + 4 * size * j
        for i in range(0, size, BLOCK):
            factor = splat_from(row + size + i // BLOCK * 4)
            store(out + 4 * i, load_bytes(row + i) * factor)
            store(out + 4 * (i + LANES), load_bytes(row + i + LANES) * factor)
    return buffer
