"""Matrix products of activations with weight matrices in the layout of their file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matmul import dispatch
from engine.kernels.matmul.activations import PREPARATIONS, preparation_task, prepared_bytes
from engine.kernels.matmul.checks import check_array, check_matrix
from engine.kernels.matmul.dequantise import row_decoder
from engine.kernels.matmul.dots import activations_of, dot_of, kernel_name, rows_for_panels
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.matmul.panel import RECORD_SPACE, panel_row_bytes, panel_rows
from engine.kernels.matmul.tasks import kernel_task, panel_task
from engine.kernels.matrix import Matrix
from engine.kernels.team import GATE

Floats = npt.NDArray[np.float32]

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
    if len(matrices) != len(outs):
        raise ValueError(f"{len(matrices)} matrices have {len(outs)} outputs")
    check_array("the input", x)
    T, K = x.shape
    records = [_record(context, matrix) for matrix in matrices]
    rows = 0
    for matrix, out in zip(matrices, outs, strict=True):
        check_array("the output", out)
        if matrix.cols != K:
            raise ValueError(f"the input has {K} columns, the {matrix.format} matrix {matrix.cols}")
        if out.shape != (T, matrix.rows):
            raise ValueError(f"the output is {out.shape}, not {(T, matrix.rows)}")
        rows += matrix.rows
    threads = context.threads if T * K * rows >= _SMALL_PRODUCT else 1
    plan = context.plan(dispatch.HEADER_FIELDS + context.threads * len(records) * JOB_FIELDS)
    panel_bytes = max(record.panel_bytes for record in records)
    scratch, panels, prepared = _prepare(context, plan, records, x, context.threads * panel_bytes)
    for index, (record, out) in enumerate(zip(records, outs, strict=True)):
        dispatch.add_job(plan, index, record.fields, *prepared[record.activations], out, threads)
    with GATE:
        dispatch.run_plan(plan, dispatch.DEALER.address, len(records), threads, scratch, panels, panel_bytes)


@dataclass(frozen=True, slots=True)
class _Record:
    """What a matrix brings to every job."""

    activations: str
    """name of their preparation"""
    fields: npt.NDArray[np.int64]
    panel_bytes: int


def _record(context: ComputeContext, matrix: Matrix) -> _Record:
    record: _Record | None = matrix.memo.get(context.float_activations)
    if record is None:
        check_matrix(matrix)
        kernel = kernel_name(matrix.format, context.float_activations)
        fields = _fields(matrix, kernel)
        record = _Record(activations_of(kernel), fields, _panel_bytes(matrix, kernel, fields))
        matrix.memo[context.float_activations] = record
    return record


def _fields(matrix: Matrix, kernel: str) -> npt.NDArray[np.int64]:
    dot, size = dot_of(kernel), row_bytes(matrix.format, matrix.cols)
    fields = np.zeros(JOB_FIELDS, np.int64)
    fields[Field.KERNEL] = kernel_task(kernel).address
    fields[Field.ROWS] = matrix.rows
    fields[Field.WEIGHTS] = matrix.data.ctypes.data
    fields[Field.ROW_BYTES] = size
    fields[Field.STEPS] = -(-matrix.cols // dot.columns)
    fields[Field.TAIL_BYTES] = size % dot.weight_bytes
    if matrix.scale is not None:
        fields[Field.SCALE] = matrix.scale.ctypes.data
        fields[Field.SCALE_STRIDE] = 4 * matrix.scale.shape[1]
    return fields


def _panel_bytes(matrix: Matrix, kernel: str, fields: npt.NDArray[np.int64]) -> int:
    """Bytes of a worker's panel; completes the fields of the job."""
    if not rows_for_panels(kernel):
        return 0
    rows = panel_rows(kernel, matrix.cols)
    fields[Field.PANEL_ROWS] = rows
    fields[Field.PANEL_KERNEL] = panel_task(kernel).address
    return RECORD_SPACE + rows * panel_row_bytes(kernel, matrix.cols)


def _prepare(
    context: ComputeContext, plan: npt.NDArray[np.int64], records: Sequence[_Record], x: Floats, panel_bytes: int
) -> tuple[npt.NDArray[np.uint8], int, dict[str, tuple[int, int]]]:
    """Prepare the input as the matrices want it.

    Returns the scratch memory, where in it `panel_bytes` are free, and by the name of each preparation the address of
    its first row and the distance of its rows in bytes.
    """
    T, K = x.shape
    starts: dict[str, tuple[int, int]] = {}
    total = 0
    for record in records:
        name = record.activations
        if name not in starts:
            stride = prepared_bytes(name, K)
            starts[name] = total, stride
            total += T * stride
    scratch = context.scratch(total + panel_bytes)
    threads = min(context.threads, T) if x.size >= _SMALL_PREPARATION else 1
    prepared = {}
    for name, (start, stride) in starts.items():
        if name == "floats" and K % PREPARATIONS[name].columns == 0:
            prepared[name] = dispatch.address_of(x), 4 * K
            continue
        task = preparation_task(name).address
        with GATE:
            address = dispatch.prepare(plan, dispatch.DEALER.address, task, x, scratch, start, stride, threads)
        prepared[name] = address, stride
    return scratch, total, prepared


def warm_up(context: ComputeContext, formats: set[str]) -> Iterator[str]:
    """Compile, or load from the cache, the kernels that weights of these formats need, yielding the name of each.

    Raises ValueError for a format that is not known.
    """
    unknown = sorted(formats - FORMATS.keys())
    if unknown:
        raise ValueError(f"there are no weight formats {', '.join(unknown)}; known are {', '.join(FORMATS)}")
    for item in (dispatch.DEALER, dispatch.prepare, dispatch.address_of, dispatch.add_job, dispatch.run_plan):
        item.compile()
    for name in sorted(formats):
        kernel = kernel_name(name, context.float_activations)
        kernel_task(kernel).compile()
        if rows_for_panels(kernel):
            panel_task(kernel).compile()
        yield f"linear {kernel}"
        preparation_task(activations_of(kernel)).compile()
        yield f"activations {activations_of(kernel)}"
        row_decoder(name).compile()
        yield f"dequantise {name}"
