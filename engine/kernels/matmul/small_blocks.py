"""Formats with a float factor for every 32 (NVFP4: 16) columns, eight blocks of 32 at a time."""

from __future__ import annotations

from collections.abc import Callable

from engine.kernels.matmul.blocks import SmallBlocks, nibbles
from engine.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    Builder,
    Value,
    concatenate,
    constant,
    filled,
    gather,
    half_to_float,
    load,
    lookup_bytes,
    offset,
    reinterpret,
    shuffle,
    to_float,
    vector,
    zero,
)

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""ggml's 16 values of IQ4_NL and IQ4_XS"""
_FP4_BIAS = 12
_FP4_VALUES = tuple(_FP4_BIAS + v for v in (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12))
"""twice the values of E2M1, raised to be unsigned"""


def _halves(b: Builder, address: Value, distance: int) -> Value:
    """Eight half-precision numbers, one per block `distance` bytes apart, as <8 x float>."""
    bits = [load(b, offset(b, address, distance * j), I16) for j in range(8)]
    return half_to_float(b, gather(b, I16, bits))


def _unpacked(b: Builder, address: Value, distance: int) -> list[Value]:
    """Per block 16 bytes whose low nibbles are columns 0–15 and whose high ones are columns 16–31."""
    quants = []
    for j in range(0, 8, 2):
        parts: list[Value] = []
        for k in (j, j + 1):
            parts += nibbles(b, load(b, offset(b, address, distance * k), vector(I8, 16)))
        quants.append(concatenate(b, parts))
    return quants


def _fifth_bits(b: Builder, address: Value, distance: int) -> list[Value]:
    """Per block a 32-bit word whose bits are the columns' fifth bits, as bytes 0 or 16."""
    bits = []
    for j in range(0, 8, 2):
        words = [load(b, offset(b, address, distance * k), vector(I8, 4)) for k in (j, j + 1)]
        spread = shuffle(b, concatenate(b, words), [column // 8 for column in range(64)])
        which = constant(I8, [1 << column % 8 for column in range(64)])
        is_set = b.icmp_unsigned("!=", b.and_(spread, which), zero(which.type))
        bits.append(b.select(is_set, filled(I8, 64, 16), zero(which.type)))
    return bits


def _or_all(b: Builder, left: list[Value], right: list[Value]) -> list[Value]:
    return [b.or_(p, q) for p, q in zip(left, right, strict=True)]


def q4_0(b: Builder, address: Value) -> SmallBlocks:
    """d, 16 bytes of nibbles"""
    return SmallBlocks(_unpacked(b, offset(b, address, 2), 18), _halves(b, address, 18), bias=8)


def q4_1(b: Builder, address: Value) -> SmallBlocks:
    """d, m, 16 bytes of nibbles"""
    minimum = _halves(b, offset(b, address, 2), 20)
    return SmallBlocks(_unpacked(b, offset(b, address, 4), 20), _halves(b, address, 20), minimum=minimum)


def q5_0(b: Builder, address: Value) -> SmallBlocks:
    """d, 32 fifth bits, 16 bytes of nibbles"""
    low, high = _unpacked(b, offset(b, address, 6), 22), _fifth_bits(b, offset(b, address, 2), 22)
    return SmallBlocks(_or_all(b, low, high), _halves(b, address, 22), bias=16)


def q5_1(b: Builder, address: Value) -> SmallBlocks:
    """d, m, 32 fifth bits, 16 bytes of nibbles"""
    low, high = _unpacked(b, offset(b, address, 8), 24), _fifth_bits(b, offset(b, address, 4), 24)
    minimum = _halves(b, offset(b, address, 2), 24)
    return SmallBlocks(_or_all(b, low, high), _halves(b, address, 24), minimum=minimum)


def q8_0(b: Builder, address: Value) -> SmallBlocks:
    """d, 32 signed bytes"""
    rows = [load(b, offset(b, address, 34 * j + 2), vector(I8, 32)) for j in range(8)]
    quants = [concatenate(b, rows[j : j + 2]) for j in range(0, 8, 2)]
    return SmallBlocks(quants, _halves(b, address, 34), signed=True)


def iq4_nl(b: Builder, address: Value) -> SmallBlocks:
    """d, 16 bytes of indices into IQ4_VALUES"""
    quants = [lookup_bytes(b, IQ4_VALUES, index) for index in _unpacked(b, offset(b, address, 2), 18)]
    return SmallBlocks(quants, _halves(b, address, 18), signed=True)


def mxfp4(b: Builder, address: Value) -> SmallBlocks:
    """power of two (E8M0), 16 bytes of E2M1; the values here are doubled and the factors halved"""
    quants = [lookup_bytes(b, _FP4_VALUES, index) for index in _unpacked(b, offset(b, address, 1), 17)]
    exponents = gather(b, I8, [load(b, offset(b, address, 17 * j), I8) for j in range(8)])
    x = b.zext(exponents, vector(I32, 8))
    normal = b.shl(b.sub(x, filled(I32, 8, 1)), filled(I32, 8, 23))
    # The two smallest halved powers are below float32's normal numbers: 2^-128 and 2^-127.
    tiny = b.shl(filled(I32, 8, 0x00200000), b.and_(x, filled(I32, 8, 1)))
    bits = b.select(b.icmp_unsigned("<", x, filled(I32, 8, 2)), tiny, normal)
    return SmallBlocks(quants, reinterpret(b, bits, F32, 8), bias=_FP4_BIAS)


def nvfp4(b: Builder, address: Value) -> SmallBlocks:
    """64 columns: four factors (E4M3 without sign), four times 8 bytes of E2M1, low nibbles first"""
    quants = []
    for j in range(4):
        packed = load(b, offset(b, address, 36 * j + 4), vector(I8, 32))
        low, high = nibbles(b, packed)
        order = [32 * half + 8 * group + i for group in range(4) for half in range(2) for i in range(8)]
        raised = lookup_bytes(b, _FP4_VALUES, shuffle(b, low, order, high))
        quants.append(b.sub(raised, filled(I8, 64, _FP4_BIAS)))
    scales = [load(b, offset(b, address, 36 * j), vector(I8, 4)) for j in range(4)]
    return SmallBlocks(quants, _unsigned_e4m3(b, concatenate(b, scales)), signed=True)


def _unsigned_e4m3(b: Builder, codes: Value) -> Value:
    """Half the value of E4M3 codes <16 x i8> without regard to the sign bit; 0x7F stands for 0."""
    x = b.zext(codes, vector(I32, 16))
    exponent = b.and_(b.lshr(x, filled(I32, 16, 3)), filled(I32, 16, 15))
    mantissa = b.and_(x, filled(I32, 16, 7))
    subnormal = b.fmul(to_float(b, mantissa), filled(F32, 16, 2.0**-10))
    bits = b.or_(
        b.shl(b.add(exponent, filled(I32, 16, 119)), filled(I32, 16, 23)), b.shl(mantissa, filled(I32, 16, 20))
    )
    is_small = b.icmp_unsigned("==", exponent, zero(exponent.type))
    value = b.select(is_small, subnormal, reinterpret(b, bits, F32, 16))
    return b.select(b.icmp_unsigned("==", x, filled(I32, 16, 0x7F)), zero(value.type), value)


SMALL_BLOCKS: dict[str, tuple[int, Callable[[Builder, Value], SmallBlocks]]] = {
    "Q4_0": (8 * 18, q4_0),
    "Q4_1": (8 * 20, q4_1),
    "Q5_0": (8 * 22, q5_0),
    "Q5_1": (8 * 24, q5_1),
    "Q8_0": (8 * 34, q8_0),
    "IQ4_NL": (8 * 18, iq4_nl),
    "MXFP4": (8 * 17, mxfp4),
    "NVFP4": (4 * 36, nvfp4),
}
"""bytes of 256 columns, and how they are read"""
