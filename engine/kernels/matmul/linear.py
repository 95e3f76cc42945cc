"""Matrix products of activations with weight matrices in the layout of their file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.matmul.checks import check_array
from engine.kernels.matmul.dispatch import DEALER, HEADER_FIELDS, add_job, prepare, product, run_plan
from engine.kernels.matmul.job import JOB_FIELDS
from engine.kernels.matmul.records import Record, record_of
from engine.kernels.matrix import Matrix
from engine.kernels.team import GATE

Floats = npt.NDArray[np.float32]

_SMALL_PRODUCT = 1 << 19
"""multiplications below which waking the other threads (some 15 µs) would not pay"""


def linear(context: ComputeContext, matrix: Matrix, x: Floats, out: Floats) -> None:
    """out [T, N] = x [T, K] · Wᵀ for any T ≥ 1; x and out are C-contiguous float32.

    A row of `out` has the same bits whatever T is and however many threads there are.
    Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    _check_shapes(matrix, x.shape, out)
    record = record_of(context, matrix)
    threads = context.threads if x.size * matrix.rows >= _SMALL_PRODUCT else 1
    plan = context.plan(HEADER_FIELDS + threads * JOB_FIELDS)
    scratch = context.scratch(len(x) * record.stride + threads * record.panel_bytes)
    known = record.fields, record.task, record.stride, record.panel_bytes
    try:
        if threads == 1:
            product(plan, DEALER.address, *known, x, out, scratch, 1)
        else:
            with GATE:
                product(plan, DEALER.address, *known, x, out, scratch, threads)
    except TypeError:
        _explain(x, (out,))
        raise


def linear_many(context: ComputeContext, matrices: Sequence[Matrix], x: Floats, outs: Sequence[Floats]) -> None:
    """outs[i] [T, Ni] = x [T, K] · Wiᵀ: the input is prepared once and all rows are dealt out to the threads together.

    Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    if len(matrices) != len(outs):
        raise ValueError(f"{len(matrices)} matrices have {len(outs)} outputs")
    first_of: dict[str, Record] = {}
    records, rows = [], 0
    for matrix, out in zip(matrices, outs, strict=True):
        _check_shapes(matrix, x.shape, out)
        record = record_of(context, matrix)
        records.append(record)
        first_of.setdefault(record.preparation, record)
        rows += matrix.rows
    T = len(x)
    panel_bytes = max([record.panel_bytes for record in records])
    threads = context.threads if x.size * rows >= _SMALL_PRODUCT else 1
    panels = 0
    for record in first_of.values():
        panels += T * record.stride
    plan = context.plan(HEADER_FIELDS + threads * len(records) * JOB_FIELDS)
    scratch = context.scratch(panels + threads * panel_bytes)
    dealer, start = DEALER.address, 0
    addresses: dict[str, int] = {}
    try:
        with GATE:
            for name, record in first_of.items():
                addresses[name] = prepare(plan, dealer, record.task, x, scratch, start, record.stride, threads)
                start += T * record.stride
            for index, record in enumerate(records):
                add_job(plan, index, record.fields, addresses[record.preparation], record.stride, outs[index], threads)
            run_plan(plan, dealer, len(records), threads, scratch, panels, panel_bytes)
    except TypeError:
        _explain(x, outs)
        raise


def _check_shapes(matrix: Matrix, shape: tuple[int, ...], out: Floats) -> None:
    """Raises ValueError unless an input of this shape, the matrix and the output fit."""
    if len(shape) != 2 or shape[0] == 0:
        raise ValueError(f"the input must be a matrix with rows, not {shape}")
    if matrix.cols != shape[1]:
        raise ValueError(f"the input has {shape[1]} columns, the {matrix.format} matrix {matrix.cols}")
    if out.shape != (shape[0], matrix.rows):
        raise ValueError(f"the output is {out.shape}, not {(shape[0], matrix.rows)}")


def _explain(x: Floats, outs: Sequence[Floats]) -> None:
    """Compiled code, which checks types at no cost, has refused an array: raises the ValueError that says which."""
    check_array("the input", x)
    for out in outs:
        check_array("the output", out)
