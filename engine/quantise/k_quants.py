"""Encoders for ggml's k-quants: super-blocks of 256 values, whose groups have small integer scales of their own.

A super-block is fitted group by group; the groups' scales are then rounded to a half-precision factor times small
integers, and the values to what these make of them. Byte layouts as in ggml-common.h.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.quantise.fit import FloatArray, affine, codebook, nearest_codes, symmetric

ByteArray = npt.NDArray[np.uint8]
SUPER = 256
_LOW_TWO, _LOW_FOUR = np.uint8(3), np.uint8(15)
_TWO, _FOUR, _SIX = np.uint8(2), np.uint8(4), np.uint8(6)


def q2_k(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 84]: 16 groups of 16, scale and minimum in four bits each, values in two."""
    factors, scales, minimums, quants = _with_minimums(values, group=16, levels=3, scale_levels=15)
    return np.concatenate([scales | minimums << _FOUR, _two_bits(quants), factors], axis=1)


def q3_k(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 110]: 16 groups of 16, scales in six bits, values in three."""
    factor, scales, quants = _symmetric(values, group=16, bound=4, scale_bound=32)
    high = quants.reshape(-1, 8, 32) >> _TWO
    mask = np.bitwise_or.reduce(high << np.arange(8, dtype=np.uint8)[:, None], axis=1)
    return np.concatenate([mask, _two_bits(quants & _LOW_TWO), _six_bit_scales(scales), factor], axis=1)


def q4_k(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 144]: 8 groups of 32, scale and minimum in six bits each, values in four."""
    factors, scales, minimums, quants = _with_minimums(values, group=32, levels=15, scale_levels=63)
    return np.concatenate([factors, _six_bit_pairs(scales, minimums), _nibbles(quants, 32)], axis=1)


def q5_k(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 176]: as Q4_K with a fifth bit."""
    factors, scales, minimums, quants = _with_minimums(values, group=32, levels=31, scale_levels=63)
    high = quants.reshape(-1, 8, 32) >> _FOUR
    fifth = np.bitwise_or.reduce(high << np.arange(8, dtype=np.uint8)[:, None], axis=1)
    return np.concatenate([factors, _six_bit_pairs(scales, minimums), fifth, _nibbles(quants & _LOW_FOUR, 32)], axis=1)


def q6_k(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 210]: 16 groups of 16, scales in eight bits, values in six."""
    factor, scales, quants = _symmetric(values, group=16, bound=32, scale_bound=128)
    high = (quants >> _FOUR).reshape(-1, 2, 4, 32)
    top = high[:, :, 0] | high[:, :, 1] << _TWO | high[:, :, 2] << _FOUR | high[:, :, 3] << _SIX
    return np.concatenate(
        [_nibbles(quants & _LOW_FOUR, 64), top.reshape(-1, 64), scales.view(np.uint8), factor], axis=1
    )


def iq4_nl(values: FloatArray) -> ByteArray:
    """values [n, 32] → blocks [n, 18]: a factor, then the values as places among sixteen codes."""
    factor = codebook(values).astype(np.float16)
    quants = nearest_codes(values * _inverse(factor.astype(np.float32))[:, None])
    return np.concatenate([factor[:, None].view(np.uint8), _nibbles(quants, 16)], axis=1)


def iq4_xs(values: FloatArray) -> ByteArray:
    """values [n, 256] → blocks [n, 136]: 8 groups of 32 with scales in six bits, values as in IQ4_NL."""
    groups = values.reshape(-1, 32)
    factor, scales = _rounded_scales(codebook(groups).reshape(-1, 8), 32)
    used = factor.astype(np.float32)[:, None] * scales
    quants = nearest_codes(groups * _inverse(used).reshape(-1, 1)).reshape(-1, SUPER)
    raised = (scales + 32).astype(np.uint8)
    low = (raised & _LOW_FOUR)[:, 0::2] | (raised & _LOW_FOUR)[:, 1::2] << _FOUR
    high = np.bitwise_or.reduce((raised >> _FOUR).astype(np.uint16) << np.arange(0, 16, 2, dtype=np.uint16), axis=1)
    parts = [factor[:, None].view(np.uint8), high[:, None].view(np.uint8), low, _nibbles(quants, 16)]
    return np.concatenate(parts, axis=1)


def _with_minimums(
    values: FloatArray, group: int, levels: int, scale_levels: int
) -> tuple[ByteArray, ByteArray, ByteArray, ByteArray]:
    """(d and dmin as bytes [n, 4], scales [n, g], minimums [n, g], quants [n, 256])."""
    groups = values.reshape(-1, group)
    scales, minimums = (part.reshape(-1, SUPER // group) for part in affine(groups, levels))
    rounded, factors, used = [], [], []
    for part in (np.maximum(scales, 0), np.maximum(minimums, 0)):
        factor = (part.max(axis=1) / np.float32(scale_levels)).astype(np.float16)
        exact = factor.astype(np.float32)[:, None]
        whole = np.clip(np.rint(part * _inverse(exact)), 0, scale_levels).astype(np.uint8)
        rounded.append(whole)
        factors.append(factor[:, None].view(np.uint8))
        used.append((exact * whole).reshape(-1, 1))
    quants = np.clip(np.rint((groups + used[1]) * _inverse(used[0])), 0, levels).astype(np.uint8)
    return np.concatenate(factors, axis=1), rounded[0], rounded[1], quants.reshape(-1, SUPER)


def _symmetric(
    values: FloatArray, group: int, bound: int, scale_bound: int
) -> tuple[ByteArray, npt.NDArray[np.int8], ByteArray]:
    """(d as bytes [n, 2], scales [n, g], quants raised by `bound` [n, 256])."""
    groups = values.reshape(-1, group)
    factor, scales = _rounded_scales(symmetric(groups, bound).reshape(-1, SUPER // group), scale_bound)
    used = (factor.astype(np.float32)[:, None] * scales).reshape(-1, 1)
    quants = np.clip(np.rint(groups * _inverse(used)), -bound, bound - 1) + bound
    return factor[:, None].view(np.uint8), scales, quants.astype(np.uint8).reshape(-1, SUPER)


def _rounded_scales(scales: FloatArray, bound: int) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.int8]]:
    """Scales [n, g] as a factor per super-block times integers in −bound…bound − 1, the largest being −bound."""
    largest = np.take_along_axis(scales, np.abs(scales).argmax(axis=1)[:, None], axis=1)
    factor = (largest[:, 0] / np.float32(-bound)).astype(np.float16)
    whole = np.rint(scales * _inverse(factor.astype(np.float32))[:, None])
    return factor, np.clip(whole, -bound, bound - 1).astype(np.int8)


def _inverse(numbers: FloatArray) -> FloatArray:
    """1 / x, and 0 for 0."""
    return np.divide(np.float32(1), numbers, out=np.zeros_like(numbers), where=numbers != 0)


def _nibbles(quants: ByteArray, distance: int) -> ByteArray:
    """Four-bit values, those `distance` apart in one byte."""
    pairs = quants.reshape(-1, 2, distance)
    return (pairs[:, 0] | pairs[:, 1] << _FOUR).reshape(len(quants), quants.shape[1] // 2)


def _two_bits(quants: ByteArray) -> ByteArray:
    """[n, 256] two-bit values → [n, 64]: in each half, those 32 apart share a byte."""
    runs = quants.reshape(-1, 2, 4, 32)
    packed: ByteArray = runs[:, :, 0] | runs[:, :, 1] << _TWO | runs[:, :, 2] << _FOUR | runs[:, :, 3] << _SIX
    return packed.reshape(-1, 64)


def _six_bit_pairs(scales: ByteArray, minimums: ByteArray) -> ByteArray:
    """Eight scales and eight minimums of six bits in twelve bytes."""
    first, second = slice(0, 4), slice(4, 8)
    low = [part[:, first] | (part[:, second] >> _FOUR) << _SIX for part in (scales, minimums)]
    return np.concatenate([*low, scales[:, second] & _LOW_FOUR | (minimums[:, second] & _LOW_FOUR) << _FOUR], axis=1)


def _six_bit_scales(scales: npt.NDArray[np.int8]) -> ByteArray:
    """Sixteen scales in −32…31 as twelve bytes: eight of low nibbles, four of upper pairs of bits."""
    raised = (scales + 32).astype(np.uint8)
    low = raised[:, :8] & _LOW_FOUR | (raised[:, 8:] & _LOW_FOUR) << _FOUR
    upper = (raised >> _FOUR).reshape(-1, 4, 4)
    high = upper[:, 0] | upper[:, 1] << _TWO | upper[:, 2] << _FOUR | upper[:, 3] << _SIX
    return np.concatenate([low, high], axis=1)
