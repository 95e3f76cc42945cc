"""A matrix in another format, in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from engine.kernels.cpu import physical_cores
from engine.kernels.formats import row_bytes
from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from engine.quantise.encode import encode_rows

_CHUNK = 1 << 20  # values that one thread has in hand


def convert(matrix: Matrix, format_name: str, out: npt.NDArray[np.uint8]) -> Matrix:
    """`matrix` in `format_name` (of `WRITABLE`), its bytes in `out` [rows * row bytes]; on all cores."""
    target = out.reshape(matrix.rows, row_bytes(format_name, matrix.cols))
    step = max(1, _CHUNK // matrix.cols)

    def part(begin: int) -> None:
        rows = np.arange(begin, min(begin + step, matrix.rows))
        values = np.empty((len(rows), matrix.cols), np.float32)
        dequantise_rows(matrix, rows, values)
        target[begin : begin + step] = encode_rows(values, format_name)

    with ThreadPoolExecutor(physical_cores(), "quantise") as pool:
        list(pool.map(part, range(0, matrix.rows, step)))
    return Matrix(format_name, matrix.rows, matrix.cols, out)
