"""ggml's i-quants: super-blocks of 256 columns whose quants are entries of a codebook, with signs or a shift beside.

The codebooks belong to the formats; they are taken from the gguf package when a kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from engine.kernels.matmul.blocks import SuperBlock, nibbles
from engine.kernels.matmul.k_quants import half_at
from engine.kernels.matmul.small_blocks import IQ4_VALUES
from engine.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    I64,
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
    splat,
    split,
    store,
    table,
    unknown_buffer,
    vector,
    zero,
)


@cache
def codebook(name: str) -> tuple[int, ...]:
    """The entries of a format's codebook, each as one little-endian number of four or eight bytes.

    The values of the 1-bit formats (−1, 0, 1) are held as 8 · value + 9.
    """
    from gguf import quants

    kind = getattr(quants, name)
    kind.init_grid()
    values = np.asarray(kind.grid, np.float32).reshape(-1, kind.grid_shape[1])
    if name == "IQ1_S":
        values = 8 * values + 9
    width = "<u8" if values.shape[1] == 8 else "<u4"
    return tuple(int(entry) for entry in np.ascontiguousarray(values, np.uint8).view(width).reshape(-1))


def _entries(b: Builder, name: str, indices: list[Value]) -> list[Value]:
    """The entries at the given indices (i64), 64 columns a vector."""
    values = codebook(name)
    width = 8 if max(values) > 0xFFFFFFFF else 4
    kind = I64 if width == 8 else I32
    book = table(b, f"codebook_{name}", kind, values)
    count = 64 // width
    vectors = []
    for start in range(0, len(indices), count):
        found = [load(b, b.add(book, b.mul(i, I64(width))), kind, width) for i in indices[start : start + count]]
        vectors.append(reinterpret(b, gather(b, kind, found), I8, 64))
    return vectors


def _numbers(b: Builder, value: Value) -> list[Value]:
    """The lanes of a vector as i64 scalars, by way of memory: taking a register apart would cost more."""
    width = value.type.element.width // 8
    memory = unknown_buffer(b, width * value.type.count)
    store(b, value, memory)
    lanes = [load(b, offset(b, memory, width * lane), value.type.element) for lane in range(value.type.count)]
    return [b.zext(lane, I64) for lane in lanes]


def _with_signs(b: Builder, magnitudes: list[Value], signs: Value, bias: int) -> list[Value]:
    """bias ± magnitude, negative where the column's bit is set; `signs` is <32 x i8>, a byte for eight columns."""
    quants = []
    for magnitude, part in zip(magnitudes, split(b, signs, 4), strict=True):
        spread = shuffle(b, part, [column // 8 for column in range(64)])
        which = constant(I8, [1 << column % 8 for column in range(64)])
        negative = b.icmp_unsigned("==", b.and_(spread, which), which)
        middle = filled(I8, 64, bias)
        quants.append(b.select(negative, b.sub(middle, magnitude), b.add(middle, magnitude)))
    return quants


def _eighth_sign(b: Builder, seven: Value) -> Value:
    """Bytes of seven signs, completed by an eighth that makes the number of negative ones even."""
    folded = b.xor(seven, b.lshr(seven, filled(I8, seven.type.count, 4)))
    for shift in (2, 1):
        folded = b.xor(folded, b.lshr(folded, filled(I8, seven.type.count, shift)))
    return b.or_(seven, b.shl(folded, filled(I8, seven.type.count, 7)))


def _packed_signs(b: Builder, words: Value) -> Value:
    """<8 x i32> of four 7-bit groups each → <32 x i8>."""
    total = zero(words.type)
    for i in range(4):
        group = b.and_(b.shl(words, filled(I32, 8, i)), filled(I32, 8, 0x7F << 8 * i))
        total = b.or_(total, group)
    return _eighth_sign(b, reinterpret(b, total, I8, 32))


def _odd(b: Builder, numbers: Value) -> Value:
    """2 · n + 1 as <n x i16>: scales of n + ½, the half drawn into the factor."""
    wide = b.zext(numbers, vector(I16, numbers.type.count))
    return b.or_(b.shl(wide, filled(I16, wide.type.count, 1)), filled(I16, wide.type.count, 1))


def _nibble_scales(b: Builder, packed: Value) -> Value:
    """Nibbles, the low one first, as <n x i8> in the order of the columns."""
    low, high = nibbles(b, packed)
    count = packed.type.count
    return shuffle(b, low, [i // 2 + count * (i % 2) for i in range(2 * count)], high)


def _doubled(b: Builder, value: Value) -> Value:
    """Every lane twice: from one number for 32 columns to one for 16."""
    return shuffle(b, value, [i // 2 for i in range(2 * value.type.count)])


def _scaled(b: Builder, factor: Value, by: float) -> Value:
    return b.fmul(factor, F32(by))


def iq2_xxs(b: Builder, address: Value) -> SuperBlock:
    """d, then for every 32 columns four indices and a word of four 7-bit signs and a 4-bit scale"""
    words = load(b, offset(b, address, 2), vector(I32, 16))
    indices = reinterpret(b, shuffle(b, words, range(0, 16, 2)), I8, 32)
    signs = shuffle(b, words, range(1, 16, 2))
    quants = _with_signs(b, _entries(b, "IQ2_XXS", _numbers(b, indices)), _packed_signs(b, signs), 43)
    scales = b.trunc(b.lshr(signs, filled(I32, 8, 28)), vector(I16, 8))
    return SuperBlock(quants, _scaled(b, half_at(b, address, 0), 1 / 8), _doubled(b, _odd(b, scales)), bias=43)


def iq2_xs(b: Builder, address: Value) -> SuperBlock:
    """d, 32 words of a 9-bit index and seven signs, 8 bytes of scale nibbles"""
    words = load(b, offset(b, address, 2), vector(I16, 32))
    indices = b.and_(words, filled(I16, 32, 511))
    signs = _eighth_sign(b, b.trunc(b.lshr(words, filled(I16, 32, 9)), vector(I8, 32)))
    quants = _with_signs(b, _entries(b, "IQ2_XS", _numbers(b, indices)), signs, 43)
    scales = _odd(b, _nibble_scales(b, load(b, offset(b, address, 66), vector(I8, 8))))
    return SuperBlock(quants, _scaled(b, half_at(b, address, 0), 1 / 8), scales, bias=43)


def iq2_s(b: Builder, address: Value) -> SuperBlock:
    """d, 32 low bytes of indices, 32 bytes of signs, 8 bytes of two high bits of indices, 8 bytes of scale nibbles"""
    low = b.zext(load(b, offset(b, address, 2), vector(I8, 32)), vector(I16, 32))
    signs = load(b, offset(b, address, 34), vector(I8, 32))
    high = b.zext(load(b, offset(b, address, 66), vector(I8, 8)), vector(I16, 8))
    parts = [b.and_(b.shl(high, filled(I16, 8, 8 - 2 * i)), filled(I16, 8, 0x300)) for i in range(4)]
    order = [i // 4 + 8 * (i % 4) for i in range(32)]
    indices = b.or_(low, shuffle(b, concatenate(b, parts), order))
    quants = _with_signs(b, _entries(b, "IQ2_S", _numbers(b, indices)), signs, 43)
    scales = _odd(b, _nibble_scales(b, load(b, offset(b, address, 74), vector(I8, 8))))
    return SuperBlock(quants, _scaled(b, half_at(b, address, 0), 1 / 8), scales, bias=43)


def iq3_xxs(b: Builder, address: Value) -> SuperBlock:
    """d, 64 indices of four columns, 8 words of four 7-bit signs and a 4-bit scale"""
    indices = load(b, offset(b, address, 2), vector(I8, 64))
    signs = load(b, offset(b, address, 66), vector(I32, 8))
    quants = _with_signs(b, _entries(b, "IQ3_XXS", _numbers(b, indices)), _packed_signs(b, signs), 62)
    scales = b.trunc(b.lshr(signs, filled(I32, 8, 28)), vector(I16, 8))
    return SuperBlock(quants, _scaled(b, half_at(b, address, 0), 1 / 4), _doubled(b, _odd(b, scales)), bias=62)


def iq3_s(b: Builder, address: Value) -> SuperBlock:
    """d, 64 low bytes of indices, 8 bytes of their ninth bits, 32 bytes of signs, 4 bytes of scale nibbles"""
    low = b.zext(load(b, offset(b, address, 2), vector(I8, 64)), vector(I16, 64))
    ninth = shuffle(b, load(b, offset(b, address, 66), vector(I8, 8)), [i // 8 for i in range(64)])
    which = constant(I8, [1 << i % 8 for i in range(64)])
    is_set = b.icmp_unsigned("==", b.and_(ninth, which), which)
    indices = b.or_(low, b.select(is_set, filled(I16, 64, 256), zero(low.type)))
    signs = load(b, offset(b, address, 74), vector(I8, 32))
    quants = _with_signs(b, _entries(b, "IQ3_S", _numbers(b, indices)), signs, 15)
    scales = _odd(b, _nibble_scales(b, load(b, offset(b, address, 106), vector(I8, 4))))
    return SuperBlock(quants, half_at(b, address, 0), _doubled(b, scales), bias=15)


def _shifted(b: Builder, entries: list[Value], negative: Value) -> list[Value]:
    """The 1-bit formats' shift of ⅛, here 1: down where the byte for eight columns is not 0, else up."""
    quants = []
    for entry, part in zip(entries, split(b, negative, 4), strict=True):
        step = b.select(b.icmp_unsigned("!=", part, zero(part.type)), filled(I8, 8, -1), filled(I8, 8, 1))
        quants.append(b.add(entry, shuffle(b, step, [column // 8 for column in range(64)])))
    return quants


def iq1_s(b: Builder, address: Value) -> SuperBlock:
    """d, 32 low bytes of indices, 8 words of four times three high bits, a 3-bit scale and the sign of the shift"""
    low = b.zext(load(b, offset(b, address, 2), vector(I8, 32)), vector(I16, 32))
    words = load(b, offset(b, address, 34), vector(I16, 8))
    repeated = shuffle(b, words, [i // 4 for i in range(32)])
    high = b.and_(b.lshr(repeated, constant(I16, [3 * (i % 4) for i in range(32)])), filled(I16, 32, 7))
    indices = b.or_(low, b.shl(high, filled(I16, 32, 8)))
    negative = b.trunc(b.lshr(repeated, filled(I16, 32, 15)), vector(I8, 32))
    quants = _shifted(b, _entries(b, "IQ1_S", _numbers(b, indices)), negative)
    scales = b.and_(b.lshr(words, filled(I16, 8, 12)), filled(I16, 8, 7))
    return SuperBlock(quants, _scaled(b, half_at(b, address, 0), 1 / 8), _doubled(b, _odd(b, scales)), bias=9)


def iq1_m(b: Builder, address: Value) -> SuperBlock:
    """32 low bytes of indices, 16 bytes of twice (three high bits, the shift's sign), 4 words of 3-bit scales and d"""
    low = b.zext(load(b, address, vector(I8, 32)), vector(I16, 32))
    high = b.zext(_nibble_scales(b, load(b, offset(b, address, 32), vector(I8, 16))), vector(I16, 32))
    indices = b.or_(low, b.shl(b.and_(high, filled(I16, 32, 7)), filled(I16, 32, 8)))
    negative = b.trunc(b.and_(high, filled(I16, 32, 8)), vector(I8, 32))
    quants = _shifted(b, _entries(b, "IQ1_S", _numbers(b, indices)), negative)
    words = load(b, offset(b, address, 48), vector(I16, 4))
    repeated = shuffle(b, words, [i // 4 for i in range(16)])
    scales = b.and_(b.lshr(repeated, constant(I16, [3 * (i % 4) for i in range(16)])), filled(I16, 16, 7))
    factor = I16(0)  # d's four nibbles are the highest of the four words
    for i in range(4):
        nibble = b.lshr(b.extract_element(words, I32(i)), I16(12))
        factor = b.or_(factor, b.shl(nibble, I16(4 * i)))
    return SuperBlock(quants, _scaled(b, half_to_float(b, factor), 1 / 8), _odd(b, scales), bias=9)


def iq4_xs(b: Builder, address: Value) -> SuperBlock:
    """d, 8 times two high bits of scales, 4 bytes of their low nibbles, 128 bytes of indices into IQ4_VALUES"""
    quants = []
    for j in range(4):
        parts: list[Value] = []
        for k in (2 * j, 2 * j + 1):
            parts += nibbles(b, load(b, offset(b, address, 8 + 16 * k), vector(I8, 16)))
        quants.append(lookup_bytes(b, IQ4_VALUES, concatenate(b, parts)))
    low = b.zext(_nibble_scales(b, load(b, offset(b, address, 4), vector(I8, 4))), vector(I16, 8))
    repeated = splat(b, load(b, offset(b, address, 2), I16), 8)
    high = b.and_(b.lshr(repeated, constant(I16, [2 * i for i in range(8)])), filled(I16, 8, 3))
    scales = b.sub(b.or_(low, b.shl(high, filled(I16, 8, 4))), filled(I16, 8, 32))
    return SuperBlock(quants, half_at(b, address, 0), _doubled(b, scales), signed=True)


I_QUANTS: dict[str, tuple[int, Callable[[Builder, Value], SuperBlock]]] = {
    "IQ1_S": (50, iq1_s),
    "IQ1_M": (56, iq1_m),
    "IQ2_XXS": (66, iq2_xxs),
    "IQ2_XS": (74, iq2_xs),
    "IQ2_S": (82, iq2_s),
    "IQ3_XXS": (98, iq3_xxs),
    "IQ3_S": (110, iq3_s),
    "IQ4_XS": (136, iq4_xs),
}
"""bytes of 256 columns, and how they are read"""
