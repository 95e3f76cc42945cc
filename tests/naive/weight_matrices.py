"""Random weight matrices of every format, with the exact values that their bytes stand for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matrix import Matrix

_BLOCKS = Path(__file__).parent.parent / "data" / "dequant" / "blocks.npz"
_SOUND = slice(2, None)  # rows 0 and 1 of the blocks have no scale, or nearly none


def random_matrix(name: str, rows: int, cols: int, rng: np.random.Generator) -> Matrix:
    """A matrix of the given format whose weights are of a magnitude that models have."""
    scale = None
    if FORMATS[name].is_float:
        data = _floats(name, rng.standard_normal((rows, cols), dtype=np.float32), rng)
        if name == "F8_E4M3":
            scale = rng.random((-(-rows // 128), -(-cols // 128)), dtype=np.float32) * np.float32(0.1)
    else:
        blocks = _sound_blocks(name)
        count = rows * row_bytes(name, cols) // blocks.shape[1]
        data = np.ascontiguousarray(blocks[rng.integers(0, len(blocks), count)])
    return Matrix(name, rows, cols, data.reshape(-1).view(np.uint8), scale)


def _floats(name: str, values: npt.NDArray[np.float32], rng: np.random.Generator) -> npt.NDArray[np.generic]:
    if name == "F32":
        return values
    if name == "F16":
        return values.astype(np.float16)
    if name == "BF16":
        return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    codes = rng.integers(0, 256, values.shape, dtype=np.uint8)
    codes[codes & 0x7F == 0x7F] = 0  # no NaN
    return codes


@cache
def _sound_blocks(name: str) -> npt.NDArray[np.uint8]:
    if name == "NVFP4":
        blocks = np.random.default_rng(40).integers(0, 256, (14, 36), dtype=np.uint8)
        blocks[:, :4] = np.random.default_rng(41).integers(0x20, 0x48, (14, 4))
        return blocks
    with np.load(_BLOCKS) as stored:
        return stored[f"{name}.raw"][_SOUND]


def values_of(matrix: Matrix) -> npt.NDArray[np.float64]:
    """float64 [rows, cols]: the weights, by gguf's own decoder or the definition of the number format."""
    data = matrix.data.reshape(matrix.rows, -1)
    if matrix.format != "F8_E4M3":
        kind = gguf.GGMLQuantizationType[matrix.format]
        return gguf.quants.dequantize(data, kind).astype(np.float64).reshape(matrix.rows, matrix.cols)
    exponent, mantissa = (data >> 3) & 15, data & 7
    values = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent.astype(np.float64) - 10))
    signed = np.where(data > 127, -values, values).astype(np.float32)
    assert matrix.scale is not None
    blocks = np.repeat(np.repeat(matrix.scale, 128, 0), 128, 1)[: matrix.rows, : matrix.cols]
    return (signed * blocks).astype(np.float64)


def int8_activations(x: npt.NDArray[np.float32], group: int) -> npt.NDArray[np.float64]:
    """What is left of activations [T, K] after quantising to int8 with a factor for every `group` columns."""
    grouped = x.reshape(len(x), -1, group)
    factor = np.abs(grouped).max(-1, keepdims=True) / np.float32(127)
    inverse = np.where(factor > 0, np.float32(1) / np.where(factor > 0, factor, np.float32(1)), np.float32(0))
    quants = np.rint(grouped * inverse)
    return (quants.astype(np.float64) * factor.astype(np.float64)).reshape(x.shape)
