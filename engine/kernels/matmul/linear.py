"""Matrix products of activations with weight matrices in the layout of their file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matmul.activations import PREPARATIONS, preparation_task, prepared_bytes
from engine.kernels.matmul.checks import check_arguments
from engine.kernels.matmul.dequantise import row_decoder
from engine.kernels.matmul.dots import activations_of, dot_of, kernel_name
from engine.kernels.matmul.job import JOB_FIELDS
from engine.kernels.matmul.tasks import DEALER, kernel_task, run_jobs
from engine.kernels.matrix import Matrix

Floats = npt.NDArray[np.float32]

_CHUNK_BYTES = 1 << 16
"""weights that a thread takes at a time: they stay in its second-level cache while several passes read them"""
_SMALL_PRODUCT = 1 << 19
"""multiplications below which waking the other threads (some 15 µs) would not pay"""
_SMALL_PREPARATION = 1 << 16
"""activations below which the calling thread prepares them alone"""


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
    layouts = [_layout(matrix.format, matrix.cols, context.float_activations) for matrix in matrices]
    prepared = _prepare(context, layouts, x)
    jobs: list[int] = []
    for matrix, layout, out in zip(matrices, layouts, outs, strict=True):
        jobs += _job(context, matrix, layout, prepared[layout.activations], out)
    small = x.size * sum(matrix.rows for matrix in matrices) < _SMALL_PRODUCT
    run_jobs(jobs, 1 if small else context.threads)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the kernel of a format must know of rows of a given length."""

    kernel: int
    activations: str
    row_bytes: int
    steps: int
    tail_bytes: int


@cache
def _layout(format_name: str, cols: int, float_activations: bool) -> _Layout:
    kernel = kernel_name(format_name, float_activations)
    dot = dot_of(kernel)
    size = row_bytes(format_name, cols)
    return _Layout(
        kernel_task(kernel).address, activations_of(kernel), size, -(-cols // dot.columns), size % dot.weight_bytes
    )


def _prepare(context: ComputeContext, layouts: Sequence[_Layout], x: Floats) -> dict[str, tuple[int, int, int]]:
    """Prepare the input as the layouts want it: name of the preparation → (address, distance of rows, rows)."""
    T, K = x.shape
    source = x.ctypes.data
    prepared: dict[str, tuple[int, int, int]] = {}
    total = 0
    for layout in layouts:
        name = layout.activations
        if name == "floats" and K % PREPARATIONS[name].columns == 0:
            prepared[name] = source, 4 * K, T
        elif name not in prepared:
            prepared[name] = total, prepared_bytes(name, K), T
            total += T * prepared_bytes(name, K)
    if total == 0:
        return prepared
    scratch = context.scratch(total).ctypes.data
    chunk = max(1, _SMALL_PREPARATION // 4 // K)
    jobs: list[int] = []
    for name, (start, stride, _) in prepared.items():
        if stride == 4 * K and start == source:
            continue
        prepared[name] = scratch + start, stride, T
        sizes = [
            preparation_task(name).address,
            -(-T // chunk),
            chunk,
            T,
            source,
            4 * K,
            0,
            0,
            scratch + start,
            stride,
            T,
        ]
        jobs += [*sizes, *[0] * (JOB_FIELDS - len(sizes))]
    run_jobs(jobs, 1 if x.size < _SMALL_PREPARATION else context.threads)
    return prepared


def _job(
    context: ComputeContext, matrix: Matrix, layout: _Layout, activations: tuple[int, int, int], out: Floats
) -> list[int]:
    """The fields of a product, in the order of `job.Field`."""
    chunk = max(4, min(_CHUNK_BYTES // layout.row_bytes, -(-matrix.rows // (4 * context.threads))))
    scale, scale_stride = 0, 0
    if matrix.scale is not None:
        scale, scale_stride = matrix.scale.ctypes.data, 4 * matrix.scale.shape[1]
    return [
        layout.kernel,
        -(-matrix.rows // chunk),
        chunk,
        matrix.rows,
        matrix.data.ctypes.data,
        layout.row_bytes,
        layout.steps,
        layout.tail_bytes,
        *activations,
        out.ctypes.data,
        4 * out.shape[1],
        scale,
        scale_stride,
        0,
    ]


def warm_up(context: ComputeContext, formats: set[str]) -> Iterator[str]:
    """Compile, or load from the cache, the kernels that weights of these formats need, yielding the name of each.

    Raises ValueError for a format that is not known.
    """
    unknown = sorted(formats - FORMATS.keys())
    if unknown:
        raise ValueError(f"there are no weight formats {', '.join(unknown)}; known are {', '.join(FORMATS)}")
    DEALER.compile()
    for name in sorted(formats):
        kernel = kernel_name(name, context.float_activations)
        kernel_task(kernel).compile()
        yield f"linear {kernel}"
        preparation_task(activations_of(kernel)).compile()
        yield f"activations {activations_of(kernel)}"
        row_decoder(name).compile()
        yield f"dequantise {name}"
