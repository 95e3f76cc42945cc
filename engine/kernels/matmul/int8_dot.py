"""Quantised weights times activations quantised to int8: integer products, then float factors.

An activation record covers 256 columns in 320 bytes (64-byte aligned); see `activations.py`:
- for small blocks: 256 quants, 8 factors (float), 8 sums of 32 quants times their factor (float);
- for super-blocks: 256 quants, 16 sums of 16 quants (int16), the factor of all (float).
All integer sums are exact, so that their order, and the instruction that makes them, changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.kernels.matmul.blocks import COLUMNS, SmallBlocks, SuperBlock
from engine.kernels.matmul.dot import LANES, Dot
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
    select_signed,
    shuffle,
    splat,
    split,
    to_float,
    vector,
    zero,
)

RECORD_BYTES = 320
FACTORS, SUMS = 256, 288
"""where small blocks have their factors and sums"""
GROUP_SUMS, FACTOR = 256, 288
"""where super-blocks have their sums and their factor"""

STREAMS = ((4, 1), (2, 1), (1, 1))


def _quants(b: Builder, record: Value, j: int) -> Value:
    return load(b, offset(b, record, 64 * j), vector(I8, 64), 64)


def _multiply_low(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """`total` <16 x float> + x · y in its first eight lanes."""
    low, high = split(b, total, 2)
    return concatenate(b, [fma(b, x, y, low), high])


def small_blocks_dot(weight_bytes: int, read: Callable[[Builder, Value], SmallBlocks]) -> Dot:
    """Factor of the weights · factor of the activations for every 32 columns."""

    def emit(
        b: Builder, accumulators: list[Value], weights: Value, activations: list[Value], _scale: Value
    ) -> list[Value]:
        block = read(b, weights)
        each = block.factors.type.count // 4  # factors of 64 columns
        factors = [
            shuffle(b, block.factors, [each * j + lane * each // LANES for lane in range(LANES)]) for j in range(4)
        ]
        products = [_product_of(b, quants, block.signed) for quants in block.quants]
        minimum = block.minimum
        if block.bias:
            minimum = b.fmul(block.factors, filled(F32, 8, -block.bias))
        totals = []
        for accumulator, record in zip(accumulators, activations, strict=True):
            total = accumulator
            scales = load(b, offset(b, record, FACTORS), vector(F32, 8), 32)
            for j in range(4):
                scale = b.fmul(factors[j], shuffle(b, scales, [2 * j] * 8 + [2 * j + 1] * 8))
                total = fma(b, to_float(b, products[j](_quants(b, record, j))), scale, total)
            if minimum is not None:
                sums = load(b, offset(b, record, SUMS), vector(F32, 8), 32)
                total = _multiply_low(b, sums, minimum, total)
            totals.append(total)
        return totals

    return Dot(COLUMNS, weight_bytes, RECORD_BYTES, STREAMS, emit)


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


def super_block_dot(weight_bytes: int, read: Callable[[Builder, Value], SuperBlock]) -> Dot:
    """Integer scales within 256 columns, then one factor."""

    def emit(
        b: Builder, accumulators: list[Value], weights: Value, activations: list[Value], _scale: Value
    ) -> list[Value]:
        block = read(b, weights)
        scales = [shuffle(b, block.scales, [4 * j + pair // 8 for pair in range(32)]) for j in range(4)]
        magnitudes = [absolute(b, quants) if block.signed else quants for quants in block.quants]
        biased = b.mul(block.scales, filled(I16, 16, block.bias)) if block.bias else None
        totals = []
        for accumulator, record in zip(accumulators, activations, strict=True):
            sums = load(b, offset(b, record, GROUP_SUMS), vector(I16, 16), 32)
            factor = load(b, offset(b, record, FACTOR), F32, 4)
            integer = zero(vector(I32, LANES))
            for j in range(4):
                x = _quants(b, record, j)
                x = select_signed(b, block.quants[j], x) if block.signed else x
                integer = b.add(integer, multiply_words(b, multiply_bytes(b, magnitudes[j], x), scales[j]))
            if biased is not None:
                low, high = split(b, integer, 2)
                integer = concatenate(b, [b.sub(low, multiply_words(b, sums, biased)), high])
            total = fma(b, to_float(b, integer), splat(b, b.fmul(block.factor, factor), LANES), accumulator)
            if block.minimums is not None:
                less = splat(b, b.fneg(b.fmul(block.minimum_factor, factor)), 8)
                minimum = to_float(b, multiply_words(b, sums, block.minimums))
                total = _multiply_low(b, minimum, less, total)
            totals.append(total)
        return totals

    return Dot(COLUMNS, weight_bytes, RECORD_BYTES, STREAMS, emit)
