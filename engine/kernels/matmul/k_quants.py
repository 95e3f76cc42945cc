"""ggml's k-quants and ternary formats: super-blocks of 256 columns, k-quants with integer scales for 16 or 32 each."""

from __future__ import annotations

from collections.abc import Callable

from engine.kernels.matmul.blocks import SuperBlock, nibbles
from engine.kernels.simd import (
    I8,
    I16,
    I32,
    I64,
    Builder,
    Value,
    concatenate,
    filled,
    half_to_float,
    load,
    offset,
    shuffle,
    split,
    vector,
)


def half_at(b: Builder, address: Value, distance: int) -> Value:
    """The half-precision number at a distance from `address`, as float."""
    return half_to_float(b, load(b, offset(b, address, distance), I16))


def _shifted(b: Builder, value: Value, count: int) -> Value:
    """Bytes shifted right by `count` bits, or left when it is negative."""
    amount = filled(I8, value.type.count, abs(count))
    return b.lshr(value, amount) if count >= 0 else b.shl(value, amount)


def _bits_to(b: Builder, value: Value, bit: int, width: int, place: int) -> Value:
    """`width` bits of every byte, from position `bit` to position `place`."""
    mask = ((1 << width) - 1) << place
    return b.and_(_shifted(b, value, bit - place), filled(I8, value.type.count, mask))


def _two_bit(b: Builder, address: Value) -> list[Value]:
    """64 bytes: each half holds four runs of 32 columns, two bits each."""
    quants = []
    for half in split(b, load(b, address, vector(I8, 64)), 2):
        for low in (0, 4):
            quants.append(concatenate(b, [_bits_to(b, half, low, 2, 0), _bits_to(b, half, low + 2, 2, 0)]))
    return quants


def _scales_and_minimums(b: Builder, address: Value) -> tuple[Value, Value]:
    """12 bytes: eight 6-bit scales and eight 6-bit minimums of 32 columns, each doubled to <16 x i16>."""
    words = [load(b, offset(b, address, 4 * i), I32) for i in range(3)]
    top = I32(0x30303030)
    low_nibbles, high_nibbles = (b.and_(b.lshr(words[2], I32(shift)), I32(0x0F0F0F0F)) for shift in (0, 4))
    upper = [
        b.or_(low_nibbles, b.and_(b.lshr(words[0], I32(2)), top)),
        b.or_(high_nibbles, b.and_(b.lshr(words[1], I32(2)), top)),
    ]
    result = []
    for i in range(2):
        lower = b.zext(b.and_(words[i], I32(0x3F3F3F3F)), I64)
        both = b.or_(lower, b.shl(b.zext(upper[i], I64), I64(32)))
        narrow = shuffle(b, b.bitcast(both, vector(I8, 8)), [j // 2 for j in range(16)])
        result.append(b.zext(narrow, vector(I16, 16)))
    return result[0], result[1]


def q2_k(b: Builder, address: Value) -> SuperBlock:
    """16 bytes of scale and minimum nibbles, 64 bytes of quants, d, dmin"""
    scales, minimums = (b.zext(half, vector(I16, 16)) for half in nibbles(b, load(b, address, vector(I8, 16))))
    return SuperBlock(
        _two_bit(b, offset(b, address, 16)),
        half_at(b, address, 80),
        scales,
        minimum_factor=half_at(b, address, 82),
        minimums=minimums,
    )


def q3_k(b: Builder, address: Value) -> SuperBlock:
    """32 bytes of third bits, 64 bytes of two bits, 12 bytes of 6-bit scales, d"""
    high = load(b, address, vector(I8, 32))
    quants = []
    for j, low in enumerate(_two_bit(b, offset(b, address, 32))):
        third = concatenate(b, [_bits_to(b, high, 2 * j, 1, 2), _bits_to(b, high, 2 * j + 1, 1, 2)])
        quants.append(b.or_(low, third))
    low_scales = concatenate(b, list(nibbles(b, load(b, offset(b, address, 96), vector(I8, 8)))))
    top = load(b, offset(b, address, 104), vector(I8, 4))
    high_scales = concatenate(b, [_bits_to(b, top, 2 * i, 2, 4) for i in range(4)])
    scales = b.sub(b.zext(b.or_(low_scales, high_scales), vector(I16, 16)), filled(I16, 16, 32))
    return SuperBlock(quants, half_at(b, address, 108), scales, bias=4)


def q4_k(b: Builder, address: Value) -> SuperBlock:
    """d, dmin, 12 bytes of scales and minimums, 128 bytes of nibbles"""
    scales, minimums = _scales_and_minimums(b, offset(b, address, 4))
    packed = [load(b, offset(b, address, 16 + 32 * j), vector(I8, 32)) for j in range(4)]
    quants = [concatenate(b, list(nibbles(b, part))) for part in packed]
    return SuperBlock(
        quants,
        half_at(b, address, 0),
        scales,
        minimum_factor=half_at(b, address, 2),
        minimums=minimums,
    )


def q5_k(b: Builder, address: Value) -> SuperBlock:
    """d, dmin, 12 bytes of scales and minimums, 32 bytes of fifth bits, 128 bytes of nibbles"""
    scales, minimums = _scales_and_minimums(b, offset(b, address, 4))
    high = load(b, offset(b, address, 16), vector(I8, 32))
    quants = []
    for j in range(4):
        low = concatenate(b, list(nibbles(b, load(b, offset(b, address, 48 + 32 * j), vector(I8, 32)))))
        fifth = concatenate(b, [_bits_to(b, high, 2 * j, 1, 4), _bits_to(b, high, 2 * j + 1, 1, 4)])
        quants.append(b.or_(low, fifth))
    return SuperBlock(
        quants,
        half_at(b, address, 0),
        scales,
        minimum_factor=half_at(b, address, 2),
        minimums=minimums,
    )


def q6_k(b: Builder, address: Value) -> SuperBlock:
    """128 bytes of low nibbles, 64 bytes of two high bits, 16 signed scales, d"""
    quants = []
    for half in range(2):
        low = nibbles(b, load(b, offset(b, address, 64 * half), vector(I8, 64)))
        high = load(b, offset(b, address, 128 + 32 * half), vector(I8, 32))
        for j in range(2):
            top = concatenate(b, [_bits_to(b, high, 4 * j, 2, 4), _bits_to(b, high, 4 * j + 2, 2, 4)])
            quants.append(b.or_(low[j], top))
    scales = b.sext(load(b, offset(b, address, 192), vector(I8, 16)), vector(I16, 16))
    return SuperBlock(quants, half_at(b, address, 208), scales, bias=32)


def tq1_0(b: Builder, address: Value) -> SuperBlock:
    """32, then 16, then 4 bytes of five (the last: four) base-3 digits as fractions of 256, d"""
    pieces = []
    for start, count, digits in ((0, 32, 5), (32, 16, 5), (48, 4, 4)):
        packed = load(b, offset(b, address, start), vector(I8, count))
        for digit in range(digits):
            # The leading digit of the fraction is the top of three times it.
            fraction = b.zext(b.mul(packed, filled(I8, count, 3**digit)), vector(I16, count))
            top = b.lshr(b.mul(fraction, filled(I16, count, 3)), filled(I16, count, 8))
            pieces.append(b.trunc(top, vector(I8, count)))
    long, middle, short = pieces[:5], pieces[5:10], pieces[10:]
    quants = [
        concatenate(b, long[0:2]),
        concatenate(b, long[2:4]),
        concatenate(b, [long[4], concatenate(b, middle[0:2])]),
        concatenate(b, [concatenate(b, middle[2:4]), concatenate(b, [middle[4], concatenate(b, short)])]),
    ]
    return SuperBlock(quants, half_at(b, address, 52), filled(I16, 16, 1), bias=1)


def tq2_0(b: Builder, address: Value) -> SuperBlock:
    """64 bytes of two bits, d"""
    return SuperBlock(_two_bit(b, address), half_at(b, address, 64), filled(I16, 16, 1), bias=1)


K_QUANTS: dict[str, tuple[int, Callable[[Builder, Value], SuperBlock]]] = {
    "Q2_K": (84, q2_k),
    "Q3_K": (110, q3_k),
    "Q4_K": (144, q4_k),
    "Q5_K": (176, q5_k),
    "Q6_K": (210, q6_k),
    "TQ1_0": (54, tq1_0),
    "TQ2_0": (66, tq2_0),
}
"""bytes of 256 columns, and how they are read"""
