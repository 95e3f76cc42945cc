"""What is known of a matrix before any product: checked once, worked out once, kept with the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.formats import row_bytes
from engine.kernels.matmul.activations import PREPARATIONS, preparation_task, prepared_bytes
from engine.kernels.matmul.checks import check_matrix
from engine.kernels.matmul.dots import activations_of, dot_of, kernel_name, rows_for_panels
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.matmul.panel import RECORD_SPACE, panel_row_bytes, panel_rows
from engine.kernels.matmul.tasks import kernel_task, panel_task
from engine.kernels.matrix import Matrix


@dataclass(frozen=True, slots=True)
class Record:
    """What a matrix brings to every job."""

    fields: npt.NDArray[np.int64]
    """the job's fields (`job.Field`), but for activations and output"""
    preparation: str
    """the form in which it wants its activations; records with the same share them"""
    task: int
    """address of the task that brings activations into this form; 0 when they are used as they are"""
    stride: int
    """bytes of a row of activations in this form, a multiple of 64"""
    panel_bytes: int
    """memory that a worker needs for decoded weights"""


def record_of(context: ComputeContext, matrix: Matrix) -> Record:
    """The record of a matrix; raises ValueError when its bytes do not fit its shape."""
    record: Record | None = matrix.memo.get(context.float_activations)
    if record is None:
        check_matrix(matrix)
        record = _make_record(matrix, kernel_name(matrix.format, context.float_activations))
        matrix.memo[context.float_activations] = record
    return record


def _make_record(matrix: Matrix, kernel: str) -> Record:
    preparation = activations_of(kernel)
    as_they_are = preparation == "floats" and matrix.cols % PREPARATIONS[preparation].columns == 0
    fields, panel_bytes = _fields(matrix, kernel), 0
    if rows_for_panels(kernel):
        rows = panel_rows(kernel, matrix.cols)
        fields[Field.PANEL_ROWS] = rows
        fields[Field.PANEL_KERNEL] = panel_task(kernel).address
        panel_bytes = RECORD_SPACE + rows * panel_row_bytes(kernel, matrix.cols)
    return Record(
        fields,
        preparation,
        0 if as_they_are else preparation_task(preparation).address,
        prepared_bytes(preparation, matrix.cols),
        panel_bytes,
    )


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
