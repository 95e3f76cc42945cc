"""Matrices as views of a buffer that holds their unit's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.kernels.matrix import Matrix
from engine.weights.buffers import ByteArray
from engine.weights.units import UnitTensor
from engine.weights.vectors import FloatArray


def matrices(
    tensors: Sequence[UnitTensor], places: Sequence[int], buffer: ByteArray, vectors: Mapping[str, FloatArray]
) -> dict[str, Matrix]:
    """The matrices of `tensors`, whose bytes begin at `places` in `buffer`; nothing is copied."""
    return {
        tensor.name: Matrix(
            tensor.format,
            tensor.rows,
            tensor.cols,
            buffer[place : place + tensor.range.nbytes],
            _scale(tensor, vectors),
        )
        for tensor, place in zip(tensors, places, strict=True)
    }


def _scale(tensor: UnitTensor, vectors: Mapping[str, FloatArray]) -> FloatArray | None:
    if tensor.scale is None:
        return None
    scale = vectors[tensor.scale]
    if tensor.scale_index is not None:
        scale = scale[tensor.scale_index]
    if tensor.scale_rows is not None:
        scale = scale[slice(*tensor.scale_rows)]
    return scale
