"""Encoders for ggml's blocks of 32 values with one factor: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, rounded as ggml does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.quantise.fit import FloatArray

ByteArray = npt.NDArray[np.uint8]
_FOUR, _LOW_FOUR = np.uint8(4), np.uint8(15)


def q8_0(blocks: FloatArray) -> ByteArray:
    """blocks [n, 32] → bytes [n, 34]: the largest value becomes ±127."""
    factor = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * _inverse(factor)
    quants = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.concatenate([_half(factor), quants.view(np.uint8)], axis=1)


def q4_0(blocks: FloatArray) -> ByteArray:
    """blocks [n, 32] → bytes [n, 18]: the largest value becomes −8."""
    factor, quants = _one_sided(blocks, 8)
    return np.concatenate([_half(factor), _nibbles(quants)], axis=1)


def q5_0(blocks: FloatArray) -> ByteArray:
    """blocks [n, 32] → bytes [n, 22]: the largest value becomes −16."""
    factor, quants = _one_sided(blocks, 16)
    return np.concatenate([_half(factor), _fifth_bits(quants), _nibbles(quants & _LOW_FOUR)], axis=1)


def q4_1(blocks: FloatArray) -> ByteArray:
    """blocks [n, 32] → bytes [n, 20]: 0…15 from the smallest value to the largest."""
    factor, low, quants = _from_low_to_high(blocks, 15)
    return np.concatenate([_half(factor), _half(low), _nibbles(quants)], axis=1)


def q5_1(blocks: FloatArray) -> ByteArray:
    """blocks [n, 32] → bytes [n, 24]: 0…31 from the smallest value to the largest."""
    factor, low, quants = _from_low_to_high(blocks, 31)
    return np.concatenate([_half(factor), _half(low), _fifth_bits(quants), _nibbles(quants & _LOW_FOUR)], axis=1)


def _one_sided(blocks: FloatArray, bound: int) -> tuple[FloatArray, ByteArray]:
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    factor = largest / np.float32(-bound)
    # In double precision the product is exact, so that rounding once is what a fused multiply-add does.
    raised = blocks.astype(np.float64) * _inverse(factor) + (bound + 0.5)
    return factor, np.clip(np.trunc(raised.astype(np.float32)), 0, 2 * bound - 1).astype(np.uint8)


def _from_low_to_high(blocks: FloatArray, levels: int) -> tuple[FloatArray, FloatArray, ByteArray]:
    low = blocks.min(axis=1, keepdims=True)
    factor = (blocks.max(axis=1, keepdims=True) - low) / np.float32(levels)
    quants = np.trunc((blocks - low) * _inverse(factor) + np.float32(0.5))
    return factor, low, np.clip(quants, 0, levels).astype(np.uint8)


def _inverse(factor: FloatArray) -> FloatArray:
    return np.divide(np.float32(1), factor, out=np.zeros_like(factor), where=factor != 0)


def _half(numbers: FloatArray) -> ByteArray:
    return numbers.astype("<f2").view(np.uint8)


def _nibbles(quants: ByteArray) -> ByteArray:
    return quants[:, :16] | quants[:, 16:] << _FOUR


def _fifth_bits(quants: ByteArray) -> ByteArray:
    return np.packbits(quants >> _FOUR, axis=1, bitorder="little")
