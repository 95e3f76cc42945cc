"""Quantised weights times activations quantised to int8: integer products, then float factors.

An activation record covers 256 columns in 320 bytes (64-byte aligned); see `activations.py`:
- for small blocks: 256 quants, 8 factors (float), 8 sums of 32 quants times their factor (float);
- for super-blocks: 256 quants, 16 sums of 16 quants (int16), the factor of all (float).
All integer sums are exact, so that their order, and the instruction that makes them, changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.kernels.matmul.dot import LANES
from engine.kernels.matmul.operands import SmallOperands, SuperOperands
from engine.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    Builder,
    Value,
    absolute,
    concatenate,
    dot_bytes,
    filled,
    fma,
    has,
    load,
    multiply_bytes,
    multiply_words,
    offset,
    prefers_memory,
    select_signed,
    shuffle,
    splat,
    split,
    spread_lanes,
    to_float,
    unknown_buffer,
    vector,
    zero,
)

RECORD_BYTES = 320
FACTORS, SUMS = 256, 288
"""where small blocks have their factors and sums"""
GROUP_SUMS, FACTOR = 256, 288
"""where super-blocks have their sums and their factor"""


def multiply(
    b: Builder, block: SmallOperands | SuperOperands, accumulators: list[Value], records: list[Value]
) -> list[Value]:
    """Accumulators <16 x float> + 256 columns of weights times those of each activation record (their addresses)."""
    if isinstance(block, SmallOperands):
        return _multiply_small(b, block, accumulators, records)
    return _multiply_super(b, block, accumulators, records)


def _quants(b: Builder, record: Value, j: int) -> Value:
    return load(b, offset(b, record, 64 * j), vector(I8, 64), 64)


def _multiply_low(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """`total` <16 x float> + x · y in its first eight lanes."""
    low, high = split(b, total, 2)
    return concatenate(b, [fma(b, x, y, low), high])


def _multiply_small(b: Builder, block: SmallOperands, accumulators: list[Value], records: list[Value]) -> list[Value]:
    products = [_product_of(b, quants, block.signed) for quants in block.quants]
    memory = unknown_buffer(b, 64 * len(records)) if prefers_memory() else None
    totals = []
    for t, record in enumerate(records):
        total = accumulators[t]
        factor = _factors(b, block, record, None if memory is None else offset(b, memory, 64 * t))
        for j, product in enumerate(products):
            total = fma(b, to_float(b, product(_quants(b, record, j))), factor(j), total)
        if block.minimum is not None:
            sums = load(b, offset(b, record, SUMS), vector(F32, 8), 32)
            total = _multiply_low(b, sums, block.minimum, total)
        totals.append(total)
    return totals


def _factors(b: Builder, block: SmallOperands, record: Value, memory: Value | None) -> Callable[[int], Value]:
    """The function j → <16 x float>: weights' factor · activations' factor of every lane of the sums of 64 columns."""
    count = block.factors.type.count
    factors = load(b, offset(b, record, FACTORS), vector(F32, 8), 32)
    if count == 16:
        factors = shuffle(b, factors, [group // 2 for group in range(16)])
    each = count // 4
    spread = spread_lanes(b, b.fmul(block.factors, factors), memory)
    return lambda j: concatenate(b, [spread(each * j + i, LANES // each) for i in range(each)])


def _product_of(b: Builder, quants: Value, signed: bool) -> Callable[[Value], Value]:
    """The function activations <64 x s8> → <16 x i32>, sums of four products with these quants."""
    nothing = zero(vector(I32, LANES))
    if not signed:
        return lambda x: dot_bytes(b, nothing, quants, x)
    if has("avx512vnni", "avx512vl"):
        # Activations raised by 128 are unsigned; what that adds is taken off in advance, once for all of them.
        raised = filled(I8, 64, -128)
        start = b.sub(nothing, dot_bytes(b, nothing, raised, quants))
        return lambda x: dot_bytes(b, start, b.xor(x, raised), quants)
    # |w| · (sign of w · x): raising would exceed what `multiply_bytes` can hold.
    magnitude = absolute(b, quants)
    return lambda x: dot_bytes(b, nothing, magnitude, select_signed(b, quants, x))


def _multiply_super(b: Builder, block: SuperOperands, accumulators: list[Value], records: list[Value]) -> list[Value]:
    integers = [zero(vector(I32, LANES))] * len(records)
    for j in range(4):
        quants = block.quants[j]
        magnitudes = absolute(b, quants) if block.signed else quants
        for t, record in enumerate(records):
            x = _quants(b, record, j)
            x = select_signed(b, quants, x) if block.signed else x
            products = multiply_words(b, multiply_bytes(b, magnitudes, x), block.scales[j])
            integers[t] = b.add(integers[t], products) if j else products
    totals = []
    for integer, total, record in zip(integers, accumulators, records, strict=True):
        totals.append(_finish_super(b, block, integer, total, record))
    return totals


def _finish_super(b: Builder, block: SuperOperands, integer: Value, total: Value, record: Value) -> Value:
    """total + what the integer sums of a super-block stand for."""
    sums = load(b, offset(b, record, GROUP_SUMS), vector(I16, 16), 32)
    factor = load(b, offset(b, record, FACTOR), F32, 4)
    if block.biased is not None:
        low, high = split(b, integer, 2)
        integer = concatenate(b, [b.sub(low, multiply_words(b, sums, block.biased)), high])
    total = fma(b, to_float(b, integer), splat(b, b.fmul(block.factor, factor), LANES), total)
    if block.minimums is None:
        return total
    less = splat(b, b.fneg(b.fmul(block.minimum_factor, factor)), 8)
    return _multiply_low(b, to_float(b, multiply_words(b, sums, block.minimums)), less, total)
