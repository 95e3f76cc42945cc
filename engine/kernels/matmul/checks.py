"""Whether the arguments of a product fit one another: compiled code would read beyond an array without a word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.formats import row_bytes
from engine.kernels.matrix import Matrix

Floats = npt.NDArray[np.float32]


def check_array(name: str, array: Floats) -> None:
    """Raises ValueError unless the array is a C-contiguous float32 matrix."""
    if array.dtype != np.float32 or array.ndim != 2 or not array.flags.c_contiguous:
        raise ValueError(f"{name} must be a C-contiguous float32 matrix, not {array.dtype} {array.shape}")
    if not array.flags.writeable:
        raise ValueError(f"{name} must be writeable")


def check_matrix(matrix: Matrix) -> None:
    """Raises ValueError when the bytes of a matrix (or its scales) are not as many as its shape says."""
    expected = matrix.rows * row_bytes(matrix.format, matrix.cols)
    if matrix.data.size != expected:
        raise ValueError(
            f"a {matrix.format} matrix of {matrix.rows} × {matrix.cols} has {expected} bytes, not {matrix.data.size}"
        )
    if matrix.data.dtype != np.uint8 or not matrix.data.flags.c_contiguous:
        raise ValueError(f"the data of a matrix must be contiguous uint8, not {matrix.data.dtype}")
    if matrix.format == "F8_E4M3":
        blocks = -(-matrix.rows // 128), -(-matrix.cols // 128)
        scale = matrix.scale
        if scale is None or scale.shape != blocks or scale.dtype != np.float32 or not scale.flags.c_contiguous:
            found = "none" if scale is None else f"{scale.dtype} {scale.shape}"
            raise ValueError(
                f"the scales of an F8_E4M3 matrix of {matrix.rows} × {matrix.cols} must be float32 {blocks}, "
                f"not {found}"
            )
