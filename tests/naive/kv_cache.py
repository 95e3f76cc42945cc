"""What a row of a KV cache is stored as, one number after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.naive.functions import Array

Bytes = npt.NDArray[np.uint8]


def encode(name: str, rows: Array) -> Bytes:
    """Float32 rows [..., size] as bytes [..., row bytes]."""
    rows = np.ascontiguousarray(rows, np.float32)
    if name == "f32":
        return rows.view(np.uint8)
    return _bfloat16(rows) if name == "bf16" else _blocks(rows)


def decode(name: str, rows: Bytes, size: int) -> Array:
    """The float32 numbers that stored rows stand for."""
    rows = np.ascontiguousarray(rows)
    if name == "f32":
        return rows.view(np.float32)
    if name == "bf16":
        return (rows.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    quants, factors = rows[..., :size].view(np.int8), np.ascontiguousarray(rows[..., size:]).view(np.float32)
    return quants.astype(np.float32) * np.repeat(factors, 32, axis=-1)


def _bfloat16(rows: Array) -> Bytes:
    """The nearer one of the two bfloat16 numbers around each; of two equally near, the one that ends in a zero bit."""
    bits = rows.view(np.uint32) >> 16
    low, high = ((b << 16).view(np.float32).astype(np.float64) for b in (bits, bits + 1))
    # Beyond the largest number the next step would be 2^128, which infinity stands for.
    high = np.where(np.isinf(high), np.copysign(2.0**128, high), high)
    below, above = np.abs(rows.astype(np.float64) - low), np.abs(high - rows.astype(np.float64))
    up = np.isfinite(rows) & ((above < below) | ((above == below) & (bits % 2 == 1)))
    return np.where(np.isnan(rows), bits | 0x40, bits + up).astype("<u2").view(np.uint8)


def _blocks(rows: Array) -> Bytes:
    """Signed bytes, then a factor for each 32: the largest magnitude / 127; NaN for what is not finite."""
    blocks = rows.reshape(*rows.shape[:-1], -1, 32)
    factors = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127)
    factors[factors < np.finfo(np.float32).tiny] = 0
    factors[~np.isfinite(blocks).all(axis=-1, keepdims=True)] = np.nan
    divisors = np.where(factors > 0, factors, np.float32(np.inf))
    quants = np.rint(np.where(factors > 0, blocks, 0) / divisors).astype(np.int8).reshape(rows.shape)
    return np.concatenate([quants.view(np.uint8), np.ascontiguousarray(factors[..., 0]).view(np.uint8)], axis=-1)
