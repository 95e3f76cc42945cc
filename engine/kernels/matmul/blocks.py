"""256 quantised weights while a kernel works on them: small integers in vector registers, with their factors.

Every block format comes down to one of two forms, in which `quants` are four vectors <64 x i8> of
consecutive columns:
- small blocks (`SmallBlocks`): a float factor for every 32 or 16 columns;
- super-blocks (`SuperBlock`): one float factor for all 256 columns and an integer one for every 16.
The order of the roundings below is the one that ggml defines for its formats, so that the floats are equal to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.kernels.simd import I8, I32, Builder, Value, filled, shuffle, splat, split, to_float, vector

COLUMNS = 256


@dataclass(frozen=True, slots=True)
class SmallBlocks:
    """weight = factor · (quant − bias) + minimum"""

    quants: list[Value]
    factors: Value
    """<8 x float>, or <16 x float> for blocks of 16"""
    bias: int = 0
    """the quants are unsigned and at most 128"""
    minimum: Value | None = None
    """<8 x float>"""
    signed: bool = False
    """the quants are signed, and the bias is 0"""


@dataclass(frozen=True, slots=True)
class SuperBlock:
    """weight = factor · scale · (quant − bias) − minimum_factor · minimum"""

    quants: list[Value]
    factor: Value
    """float"""
    scales: Value
    """<16 x i16>, each at most 128 in magnitude"""
    bias: int = 0
    """the quants are unsigned and at most 128"""
    minimum_factor: Value | None = None
    """float"""
    minimums: Value | None = None
    """<16 x i16>"""
    signed: bool = False
    """the quants are signed, and the bias is 0"""


def small_blocks_to_floats(b: Builder, block: SmallBlocks) -> list[Value]:
    """The weights as 16 vectors <16 x float>."""
    return _to_floats(b, block, block.factors, block.minimum)


def super_block_to_floats(b: Builder, block: SuperBlock) -> list[Value]:
    """The weights as 16 vectors <16 x float>."""
    scales = b.sext(block.scales, vector(I32, 16))
    factors = b.fmul(splat(b, block.factor, 16), to_float(b, scales))
    if block.minimum_factor is None:
        return _to_floats(b, block, factors, None)
    minimums = to_float(b, b.sext(block.minimums, vector(I32, 16)))
    return _to_floats(b, block, factors, b.fneg(b.fmul(splat(b, block.minimum_factor, 16), minimums)))


def _to_floats(b: Builder, block: SmallBlocks | SuperBlock, factors: Value, minimums: Value | None) -> list[Value]:
    widen = b.sext if block.signed else b.zext
    width = 256 // 16 // factors.type.count  # groups of 16 columns that share a factor
    floats = []
    for j, group in enumerate(quant for quants in block.quants for quant in split(b, quants, 4)):
        integers = b.sub(widen(group, vector(I32, 16)), filled(I32, 16, block.bias))
        lanes = [j // width] * 16
        value = b.fmul(to_float(b, integers), shuffle(b, factors, lanes))
        floats.append(value if minimums is None else b.fadd(value, shuffle(b, minimums, lanes)))
    return floats


def nibbles(b: Builder, packed: Value) -> tuple[Value, Value]:
    """Low and high four bits of every byte."""
    lanes = packed.type.count
    return b.and_(packed, filled(I8, lanes, 15)), b.lshr(packed, filled(I8, lanes, 4))
