"""Rows of numbers → rows of blocks, for every format that can be written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from engine.kernels.formats import FORMATS, row_bytes
from engine.quantise.fit import FloatArray

ByteArray = npt.NDArray[np.uint8]

WRITABLE = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q5_1", "Q5_0", "Q4_K", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "Q3_K",
    "Q2_K",
)  # fmt: skip
"""Formats that `encode_rows` knows."""
_SUPER = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"}
_CHUNK = 1 << 16  # values that are encoded at a time: the working copies stay in the processor's cache


def encode_rows(values: FloatArray, format_name: str) -> ByteArray:
    """Rows [n, K] of finite float32 numbers → bytes [n, row bytes] in a format of `WRITABLE`.

    Raises:
        ValueError: a row is no whole number of blocks, or the format cannot be written.
    """
    if format_name not in WRITABLE:
        raise ValueError(f"{format_name} cannot be written; known are {', '.join(WRITABLE)}")
    rows, cols = values.shape
    size = row_bytes(format_name, cols)
    if format_name == "F32":
        return np.ascontiguousarray(values, "<f4").view(np.uint8).reshape(rows, size)
    if format_name == "F16":
        return np.ascontiguousarray(values).astype("<f2").view(np.uint8).reshape(rows, size)
    layout = FORMATS[format_name]
    blocks = np.ascontiguousarray(values).reshape(-1, layout.block_elements)
    encoder = _encoder(format_name)
    out = np.empty((len(blocks), layout.block_bytes), np.uint8)
    step = max(1, _CHUNK // layout.block_elements)
    for begin in range(0, len(blocks), step):
        out[begin : begin + step] = encoder(blocks[begin : begin + step])
    return out.reshape(rows, size)


def _encoder(format_name: str) -> Callable[[FloatArray], ByteArray]:
    """blocks [n, elements] → bytes [n, block bytes]"""
    if format_name == "BF16":
        return _bf16
    from engine.quantise import k_quants, small_blocks

    module = k_quants if format_name in _SUPER else small_blocks
    encoder: Callable[[FloatArray], ByteArray] = getattr(module, format_name.lower())
    return encoder


def _bf16(blocks: FloatArray) -> ByteArray:
    """Rounded to the nearest, ties to even."""
    bits = blocks.view(np.uint32)
    return ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype("<u2").view(np.uint8)
