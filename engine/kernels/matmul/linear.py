"""Matrix products of activations with weight matrices in the layout of their file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.matmul.checks import check_array
from engine.kernels.matmul.dispatch import DEALER, HEADER_FIELDS, add_job, prepare, product_here, share_out
from engine.kernels.matmul.job import JOB_FIELDS
from engine.kernels.matmul.records import Record, record_of
from engine.kernels.matrix import Matrix
from engine.kernels.team import run

Floats = npt.NDArray[np.float32]

_SMALL_PRODUCT = 1 << 19
"""multiplications below which waking the other threads (some 15 µs) would not pay"""
_SMALL_PREPARATION = 1 << 16
"""activations below which one thread prepares them alone"""


def linear(context: ComputeContext, matrix: Matrix, x: Floats, out: Floats) -> None:
    """out [T, N] = x [T, K] · Wᵀ for any T ≥ 1; x and out are C-contiguous float32.

    A row of `out` has the same bits whatever T is and however many threads there are.
    Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    if context.threads > 1 and x.size * matrix.rows >= _SMALL_PRODUCT:
        linear_many(context, (matrix,), x, (out,))
        return
    _check_shapes(matrix, x.shape, out)
    record = record_of(context, matrix)
    plan = context.plan(HEADER_FIELDS + JOB_FIELDS)
    scratch = context.scratch(len(x) * record.stride + record.panel_bytes)
    try:
        product_here(plan, DEALER.address, record.fields, record.task, record.stride, x, out, scratch)
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
    records = []
    for matrix, out in zip(matrices, outs, strict=True):
        _check_shapes(matrix, x.shape, out)
        record = record_of(context, matrix)
        records.append(record)
        first_of.setdefault(record.preparation, record)
    threads = threads_for(context, matrices, x)
    plan = context.plan(HEADER_FIELDS + threads * len(records) * JOB_FIELDS)
    panels = sum([len(x) * record.stride for record in first_of.values()])
    panel_bytes = max([record.panel_bytes for record in records])
    scratch = context.scratch(panels + threads * panel_bytes)
    try:
        addresses = _prepare(first_of, plan, x, scratch, threads)
        for index, record in enumerate(records):
            add_job(plan, index, record.fields, addresses[record.preparation], record.stride, outs[index], threads)
    except TypeError:
        _explain(x, outs)
        raise
    share_out(plan, len(records), threads, scratch, panels, panel_bytes)
    run(DEALER, plan, threads)


def _prepare(
    records: Mapping[str, Record],
    plan: npt.NDArray[np.int64],
    x: Floats,
    scratch: npt.NDArray[np.uint8],
    threads: int,
) -> dict[str, int]:
    """Bring the input into every form that is wanted, one after the other in scratch memory; returns where they are."""
    workers = threads if x.size >= _SMALL_PREPARATION else 1
    addresses: dict[str, int] = {}
    start = 0
    for name, record in records.items():
        addresses[name] = prepare(plan, record.task, x, scratch, start, record.stride, workers)
        if workers > 1 and record.task:
            run(DEALER, plan, workers)
        start += len(x) * record.stride
    return addresses


def threads_for(context: ComputeContext, matrices: Sequence[Matrix], x: Floats) -> int:
    """How many threads products of an input are worth."""
    return context.threads if x.size * sum([matrix.rows for matrix in matrices]) >= _SMALL_PRODUCT else 1


def check_product(matrices: Sequence[Matrix], x: Floats, outs: Sequence[Floats]) -> None:
    """Raises ValueError unless the arrays are what kernels take, and fit the matrices."""
    if len(matrices) != len(outs):
        raise ValueError(f"{len(matrices)} matrices have {len(outs)} outputs")
    for matrix, out in zip(matrices, outs, strict=True):
        _check_shapes(matrix, x.shape, out)
    _explain(x, outs)


def _check_shapes(matrix: Matrix, shape: tuple[int, ...], out: Floats) -> None:
    """Raises ValueError unless an input of this shape, the matrix and the output fit."""
    if len(shape) != 2 or shape[0] == 0:
        raise ValueError(f"the input must be a matrix with rows, not {shape}")
    if matrix.cols != shape[1]:
        raise ValueError(f"the input has {shape[1]} columns, the {matrix.format} matrix {matrix.cols}")
    if out.shape != (shape[0], matrix.rows):
        raise ValueError(f"the output is {out.shape}, not {(shape[0], matrix.rows)}")


def _explain(x: Floats, outs: Sequence[Floats]) -> None:
    """Raises the ValueError that says which array compiled code, which checks types at no cost, would refuse."""
    check_array("the input", x)
    for out in outs:
        check_array("the output", out)
