"""Decoded weights in the form that products want: everything that does not depend on the activations worked out.

A kernel makes them from the bytes of a block and uses them at once, or keeps them in a panel of memory where every
further row of activations finds them. The operations that follow are the same, and so are the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.kernels.matmul.blocks import SmallBlocks, SuperBlock
from engine.kernels.simd import F32, I8, I16, Builder, Value, filled, load, offset, opaque, shuffle, store, vector

_QUANTS = 0
_FACTORS, _MINIMUM = 256, 320
_SCALES = 256
_BIASED, _MINIMUMS, _FACTOR, _MINIMUM_FACTOR = 512, 544, 576, 580
SMALL_BYTES, SUPER_BYTES = 384, 640
"""bytes of 256 columns in a panel, whose blocks are aligned to 64"""


@dataclass(frozen=True, slots=True)
class Kind:
    """What varies between formats after decoding; formats of one kind share the code that multiplies panels."""

    small: bool
    signed: bool
    biased: bool
    minimum: bool
    fine: bool = False
    """small blocks of 16 columns instead of 32"""

    @property
    def factors(self) -> int:
        """Factors of 256 columns in small blocks."""
        return 16 if self.fine else 8

    @property
    def name(self) -> str:
        """A name for the kind's kernel, which `kind_of_name` understands."""
        flags = {"signed": self.signed, "biased": self.biased, "minimum": self.minimum, "fine": self.fine}
        return " ".join(["small" if self.small else "super", *(flag for flag, given in flags.items() if given)])

    @property
    def bytes(self) -> int:
        """Bytes of 256 columns in a panel."""
        return SMALL_BYTES if self.small else SUPER_BYTES


def kind_of_name(name: str) -> Kind:
    """The kind whose name this is."""
    words = name.split()
    return Kind(words[0] == "small", *(flag in words for flag in ("signed", "biased", "minimum", "fine")))


@dataclass(frozen=True, slots=True)
class SmallOperands:
    """Small blocks: quants · activations, times the factors, plus sums of activations times the minimum."""

    quants: list[Value]
    factors: Value
    """<8 x float>, or <16 x float> for blocks of 16"""
    minimum: Value | None
    """<8 x float>, the bias drawn in"""
    signed: bool


@dataclass(frozen=True, slots=True)
class SuperOperands:
    """Super-blocks: quants · activations, times the scales, less the bias; times the factor, less the minimums."""

    quants: list[Value]
    scales: list[Value]
    """four <32 x i16>: the scale of every pair of 64 columns"""
    biased: Value | None
    """<16 x i16>: scale · bias"""
    minimums: Value | None
    """<16 x i16>"""
    factor: Value
    minimum_factor: Value | None
    signed: bool


def small_operands(b: Builder, block: SmallBlocks) -> SmallOperands:
    """The operands of decoded small blocks."""
    minimum = b.fmul(block.factors, filled(F32, 8, -block.bias)) if block.bias else block.minimum
    return SmallOperands(block.quants, block.factors, minimum, block.signed)


def super_operands(b: Builder, block: SuperBlock) -> SuperOperands:
    """The operands of a decoded super-block."""
    # Even scales in the lower half, odd ones in the upper: 32 columns then take theirs without crossing halves.
    halves = opaque(b, shuffle(b, block.scales, [*range(0, 16, 2), *range(1, 16, 2)]))
    scales = [shuffle(b, halves, [2 * j + pair // 16 + pair // 8 % 2 * 8 for pair in range(32)]) for j in range(4)]
    biased = b.mul(block.scales, filled(I16, 16, block.bias)) if block.bias else None
    return SuperOperands(block.quants, scales, biased, block.minimums, block.factor, block.minimum_factor, block.signed)


def kind_of(block: SmallOperands | SuperOperands) -> Kind:
    """The kind of operands."""
    if isinstance(block, SmallOperands):
        return Kind(True, block.signed, False, block.minimum is not None, block.factors.type.count == 16)
    return Kind(False, block.signed, block.biased is not None, block.minimums is not None)


def store_operands(b: Builder, block: SmallOperands | SuperOperands, address: Value) -> None:
    """Write operands to a panel."""
    places = [(quants, _QUANTS + 64 * j) for j, quants in enumerate(block.quants)]
    if isinstance(block, SmallOperands):
        places += [(block.factors, _FACTORS), (block.minimum, _MINIMUM)]
    else:
        places += [(scales, _SCALES + 64 * j) for j, scales in enumerate(block.scales)]
        places += [(block.biased, _BIASED), (block.minimums, _MINIMUMS)]
        places += [(block.factor, _FACTOR), (block.minimum_factor, _MINIMUM_FACTOR)]
    for value, place in places:
        if value is not None:
            store(b, value, offset(b, address, place), 4)


def load_operands(b: Builder, kind: Kind, address: Value) -> SmallOperands | SuperOperands:
    """Read operands of a kind from a panel."""
    quants = [load(b, offset(b, address, _QUANTS + 64 * j), vector(I8, 64), 64) for j in range(4)]
    if kind.small:
        factors = load(b, offset(b, address, _FACTORS), vector(F32, kind.factors), 32)
        minimum = load(b, offset(b, address, _MINIMUM), vector(F32, 8), 32) if kind.minimum else None
        return SmallOperands(quants, factors, minimum, kind.signed)
    scales = [load(b, offset(b, address, _SCALES + 64 * j), vector(I16, 32), 64) for j in range(4)]
    sixteen = vector(I16, 16)
    return SuperOperands(
        quants,
        scales,
        load(b, offset(b, address, _BIASED), sixteen, 32) if kind.biased else None,
        load(b, offset(b, address, _MINIMUMS), sixteen, 32) if kind.minimum else None,
        load(b, offset(b, address, _FACTOR), F32, 4),
        load(b, offset(b, address, _MINIMUM_FACTOR), F32, 4) if kind.minimum else None,
        kind.signed,
    )
