"""Weights whose elements stand for themselves (F32, BF16, F16, FP8) times float32 activations."""

from __future__ import annotations

from collections.abc import Callable

from engine.kernels.matmul.decoder import Decoder
from engine.kernels.matmul.dot import LANES, Dot
from engine.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    Builder,
    Value,
    filled,
    fma,
    half_to_float,
    load,
    offset,
    reinterpret,
    splat,
    vector,
)

STEP = 64
"""columns a step; activations are padded with zeros to whole steps"""
_CHAINS = 4
"""of additions, which hide the latency of one"""


def load_f32(b: Builder, address: Value) -> list[Value]:
    """64 float32 weights in their order."""
    return [load(b, offset(b, address, 64 * i), vector(F32, LANES)) for i in range(STEP // LANES)]


def load_f16(b: Builder, address: Value) -> list[Value]:
    """64 half-precision weights in their order."""
    return [half_to_float(b, load(b, offset(b, address, 32 * i), vector(I16, LANES))) for i in range(STEP // LANES)]


def load_bf16(b: Builder, address: Value) -> list[Value]:
    """64 bfloat16 weights in their order."""
    vectors = []
    for i in range(STEP // LANES):
        bits = b.zext(load(b, offset(b, address, 32 * i), vector(I16, LANES)), vector(I32, LANES))
        vectors.append(reinterpret(b, b.shl(bits, filled(I32, LANES, 16)), F32, LANES))
    return vectors


def load_bf16_pairs(b: Builder, address: Value) -> list[Value]:
    """64 bfloat16 weights as [16 even | 16 odd] of each 32: a pair is one 32-bit load away from its two floats."""
    vectors = []
    for i in range(STEP // 32):
        pairs = load(b, offset(b, address, 64 * i), vector(I32, LANES))
        even = b.shl(pairs, filled(I32, LANES, 16))
        odd = b.and_(pairs, filled(I32, LANES, 0xFFFF0000))
        vectors += [reinterpret(b, even, F32, LANES), reinterpret(b, odd, F32, LANES)]
    return vectors


def load_f8_e4m3(b: Builder, address: Value) -> list[Value]:
    """64 FP8 weights (1 sign, 4 exponent, 3 mantissa bits, no infinity) in their order, divided by 256.

    The bits are those of a half-precision number but for the exponent's bias, 7 instead of 15.
    """
    vectors = []
    for i in range(STEP // LANES):
        bits = b.zext(load(b, offset(b, address, LANES * i), vector(I8, LANES)), vector(I16, LANES))
        magnitude = b.and_(bits, filled(I16, LANES, 0x7F))
        sign = b.shl(b.and_(bits, filled(I16, LANES, 0x80)), filled(I16, LANES, 8))
        is_nan = b.sext(b.icmp_unsigned("==", magnitude, filled(I16, LANES, 0x7F)), vector(I16, LANES))
        nan = b.and_(is_nan, filled(I16, LANES, 0x7E00))
        half = b.or_(b.or_(b.shl(magnitude, filled(I16, LANES, 7)), sign), nan)
        vectors.append(half_to_float(b, half))
    return vectors


def _scaled(b: Builder, values: list[Value], scale: Value) -> list[Value]:
    """FP8 weights that were divided by 256, times their block's factor."""
    factor = splat(b, b.fmul(load(b, scale, F32, 4), F32(256)), LANES)
    return [b.fmul(value, factor) for value in values]


def _decoder(
    element_bytes: int, load_weights: Callable[[Builder, Value], list[Value]], scaled: bool = False
) -> Decoder:
    def emit(b: Builder, weights: Value, scale: Value) -> list[Value]:
        values = load_weights(b, weights)
        return _scaled(b, values, scale) if scaled else values

    return Decoder(STEP, STEP * element_bytes, emit)


FLOAT_DECODERS: dict[str, Decoder] = {
    "F32": _decoder(4, load_f32),
    "F16": _decoder(2, load_f16),
    "BF16": _decoder(2, load_bf16),
    "F8_E4M3": _decoder(1, load_f8_e4m3, scaled=True),
}


def float_dot(decoder: Decoder, chains: int) -> Dot:
    """The step that multiplies decoded weights with float32 activations in the same order of columns."""

    def emit(
        b: Builder, accumulators: list[Value], weights: Value, activations: list[Value], scale: Value
    ) -> list[Value]:
        totals = list(accumulators)
        for i, value in enumerate(decoder.emit(b, weights, scale)):
            for t, address in enumerate(activations):
                x = load(b, offset(b, address, 4 * LANES * i), vector(F32, LANES), 4)
                totals[t] = fma(b, value, x, totals[t])
        return totals

    return Dot(decoder.columns, decoder.weight_bytes, decoder.columns * 4, chains, emit)


FLOAT_DOTS: dict[str, Dot] = {name: float_dot(decoder, _CHAINS) for name, decoder in FLOAT_DECODERS.items()}
FLOAT_DOTS["BF16"] = float_dot(_decoder(2, load_bf16_pairs), _CHAINS)
