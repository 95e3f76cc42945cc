"""Matrix products of activations with weight matrices in the layout of their file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.context import ComputeContext
from engine.kernels.matmul.dequantise import row_decoder
from engine.kernels.formats import row_bytes
from engine.kernels.matmul.activations import pad_rows, split_even_odd
from engine.kernels.matmul.checks import check_arguments
from engine.kernels.matmul.dots import dot_of
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.matmul.tasks import HEADER_FIELDS, kernel_address, run_plan
from engine.kernels.matrix import Matrix

Floats = npt.NDArray[np.float32]

_CHUNK_BYTES = 1 << 16
"""weights that a thread takes at a time: they stay in its second-level cache while several passes read them"""
_SMALL_WORK = 1 << 19
"""multiplications below which waking the other threads (some 15 µs) would not pay"""


def linear(context: ComputeContext, matrix: Matrix, x: Floats, out: Floats) -> None:
    """out [T, N] = x [T, K] · Wᵀ for any T ≥ 1; x and out are C-contiguous float32.

    Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    linear_many(context, (matrix,), x, (out,))


def linear_many(context: ComputeContext, matrices: Sequence[Matrix], x: Floats, outs: Sequence[Floats]) -> None:
    """outs[i] [T, Ni] = x [T, K] · Wiᵀ: the input is prepared once and all rows are dealt out to the threads together.

    Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    check_arguments(matrices, x, outs)
    plan = np.empty(HEADER_FIELDS + len(matrices) * JOB_FIELDS, np.int64)
    prepared: dict[str, Floats] = {}
    work = 0
    for index, (matrix, out) in enumerate(zip(matrices, outs, strict=True)):
        kind = _preparation(matrix)
        if kind not in prepared:
            prepared[kind] = _prepare(kind, x)
        _add_job(context, plan, index, matrix, prepared[kind], out)
        work += matrix.rows
    threads = 1 if work * x.size < _SMALL_WORK else context.threads
    run_plan(plan, len(matrices), threads)


def _preparation(matrix: Matrix) -> str:
    return "even_odd" if matrix.format == "BF16" else "natural"


def _prepare(kind: str, x: Floats) -> Floats:
    T, K = x.shape
    if kind == "natural" and K % 64 == 0:
        return x
    out = np.empty((T, -(-K // 64) * 64), np.float32)
    (split_even_odd if kind == "even_odd" else pad_rows)(x, out)
    return out


@njit("void(int64[::1], intp, int64[::1], uint8[::1], float32[:, ::1], float32[:, ::1])", nogil=True, cache=True)
def _fill(plan, start, fixed, weights, activations, out):  # type: ignore[no-untyped-def]
    for i in range(fixed.size):
        plan[start + i] = fixed[i]
    plan[start + 4] = weights.ctypes.data
    plan[start + 8] = activations.ctypes.data
    plan[start + 9] = activations.shape[1] * 4
    plan[start + 10] = activations.shape[0]
    plan[start + 11] = out.ctypes.data
    plan[start + 12] = out.shape[1] * 4


def _add_job(
    context: ComputeContext, plan: npt.NDArray[np.int64], index: int, matrix: Matrix, prepared: Floats, out: Floats
) -> None:
    dot = dot_of(matrix.format)
    size = row_bytes(matrix.format, matrix.cols)
    chunk = max(4, min(_CHUNK_BYTES // size, -(-matrix.rows // (4 * context.threads))))
    fixed = np.zeros(JOB_FIELDS, np.int64)
    fixed[Field.KERNEL] = kernel_address(matrix.format)
    fixed[Field.CHUNKS] = -(-matrix.rows // chunk)
    fixed[Field.CHUNK_ROWS] = chunk
    fixed[Field.ROWS] = matrix.rows
    fixed[Field.ROW_BYTES] = size
    fixed[Field.STEPS] = -(-matrix.cols // dot.columns)
    fixed[Field.TAIL_BYTES] = size % dot.weight_bytes
    if matrix.scale is not None:
        fixed[Field.SCALE] = matrix.scale.ctypes.data
        fixed[Field.SCALE_STRIDE] = matrix.scale.shape[1] * 4
    _fill(plan, HEADER_FIELDS + index * JOB_FIELDS, fixed, matrix.data, prepared, out)


def warm_up(context: ComputeContext, formats: set[str]) -> Iterator[str]:
    """Compile, or load from the cache, the kernels that weights of these formats need, yielding the name of each."""
    for name in sorted(formats):
        kernel_address(name)
        row_decoder(name)
        yield f"linear {name}"
