"""Products that come again with the very same arrays, as every step of decoding has them: planned once.

A dispatch from Python costs little as long as Python's own data stays in the caches of the processor, but weights that
stream past drive it out: planning anew took as long as a fifth of the products themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.matmul.dispatch import (
    DEALER,
    HEADER_FIELDS,
    PREPARATIONS,
    PREPARATIONS_AT,
    add_job,
    run_again,
    share_out,
)
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.matmul.linear import Floats, check_product, linear_many, threads_for
from engine.kernels.matmul.records import Record, record_of
from engine.kernels.matrix import Matrix
from engine.kernels.team import GATE, TEAM

MOST_ROWS = 15
"""Longer inputs are worth planning each time, and their memory is better not held on to."""


@dataclass(frozen=True, slots=True)
class _Product:
    """All that one product needs. It is good for these objects alone, while scratch memory stays where it was."""

    context: ComputeContext
    moves: int
    objects: tuple[int, ...]
    """identities of the input, the outputs and the matrices"""
    kept: tuple[object, ...]
    """these objects themselves, so that no others can get their identities; the first matrix keeps this one"""
    plan: npt.NDArray[np.int64]
    threads: int


def linear_again(context: ComputeContext, matrices: Sequence[Matrix], x: Floats, outs: Sequence[Floats]) -> None:
    """As `linear_many`, for a caller that uses the same matrices and arrays (the same objects) again and again.

    The first matrix keeps a plan for each number of rows, and with it the arrays: not for outputs that a caller gives
    away. Raises ValueError when shapes, types or the number of bytes do not fit.
    """
    rows = len(x)
    if not 0 < rows <= MOST_ROWS:
        linear_many(context, matrices, x, outs)
        return
    memo = matrices[0].memo
    product: _Product | None = memo.get(("again", rows))
    objects = (id(x), *map(id, outs), *map(id, matrices))
    if (
        product is None
        or product.objects != objects
        or product.context is not context
        or product.moves != context.moves
    ):
        product = memo["again", rows] = _planned(context, matrices, x, outs, objects)
    if product.threads == 1:
        run_again(product.plan, DEALER.address, 0, 1)
    elif GATE is None:
        run_again(product.plan, DEALER.address, TEAM.address, product.threads)
    else:
        with GATE:
            run_again(product.plan, DEALER.address, TEAM.address, product.threads)


def _planned(
    context: ComputeContext, matrices: Sequence[Matrix], x: Floats, outs: Sequence[Floats], objects: tuple[int, ...]
) -> _Product:
    check_product(matrices, x, outs)
    records = [record_of(context, matrix) for matrix in matrices]
    forms = {record.preparation: record for record in records}
    threads = threads_for(context, matrices, x)
    jobs = HEADER_FIELDS + threads * len(records) * JOB_FIELDS
    plan = np.zeros(jobs + len(forms) * JOB_FIELDS, np.int64)
    panels = sum(len(x) * record.stride for record in forms.values())
    panel_bytes = max(record.panel_bytes for record in records)
    scratch = context.scratch(panels + threads * panel_bytes)
    addresses = _plan_preparations(plan, jobs, list(forms.values()), x, scratch.ctypes.data)
    for index, (record, out) in enumerate(zip(records, outs, strict=True)):
        add_job(plan, index, record.fields, addresses[record.preparation], record.stride, out, threads)
    share_out(plan, len(records), threads, scratch, panels, panel_bytes)
    return _Product(context, context.moves, objects, (x, *outs, *matrices[1:]), plan, threads)


def _plan_preparations(
    plan: npt.NDArray[np.int64], start: int, forms: Sequence[Record], x: Floats, target: int
) -> dict[str, int]:
    """Write the jobs that bring the input into each form, from field `start` of the plan on; returns where they go."""
    addresses, count = {}, 0
    for record in forms:
        addresses[record.preparation] = target if record.task else x.ctypes.data
        if record.task:
            job = plan[start + count * JOB_FIELDS :]
            job[Field.KERNEL], job[Field.ROWS] = record.task, len(x)
            job[Field.WEIGHTS], job[Field.ROW_BYTES] = x.ctypes.data, 4 * x.shape[1]
            job[Field.ACTIVATIONS], job[Field.ACTIVATION_STRIDE] = target, record.stride
            count += 1
        target += len(x) * record.stride
    plan[PREPARATIONS], plan[PREPARATIONS_AT] = count, start
    return addresses
