"""Compiled kernels by name."""

from __future__ import annotations

from functools import cache

from engine.kernels.compiled import Task
from engine.kernels.matmul.dots import dot_of
from engine.kernels.matmul.job import Field
from engine.kernels.matmul.row_dot import multiply_rows
from engine.kernels.team import argument

_COUNT = int(Field.COUNT)


@cache
def kernel_task(kernel: str) -> Task:
    """The task (job, first weight row, end of weight rows) of a kernel that `dots.kernel_name` names.

    It goes through the activation rows in passes of 8 (where registers allow it), 4, 2 and 1, each of which gives a row
    the same bits.
    """
    return Task(_with_passes_of_8(kernel) if len(dot_of(kernel).streams) > 3 else _with_passes_of_4(kernel))


def _with_passes_of_4(kernel: str):  # type: ignore[no-untyped-def]
    r4, r2, r1 = (rows for _, rows in dot_of(kernel).streams)

    def product(job, first, end):  # type: ignore[no-untyped-def]
        count = argument(job, _COUNT)
        token = 0
        while count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4, r4)
            token += 4
        if count - token >= 2:
            multiply_rows(job, first, end, token, kernel, 2, r2)
            token += 2
        if count > token:
            multiply_rows(job, first, end, token, kernel, 1, r1)

    return product


def _with_passes_of_8(kernel: str):  # type: ignore[no-untyped-def]
    r8, r4, r2, r1 = (rows for _, rows in dot_of(kernel).streams)

    def product(job, first, end):  # type: ignore[no-untyped-def]
        count = argument(job, _COUNT)
        token = 0
        while count - token >= 8:
            multiply_rows(job, first, end, token, kernel, 8, r8)
            token += 8
        if count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4, r4)
            token += 4
        if count - token >= 2:
            multiply_rows(job, first, end, token, kernel, 2, r2)
            token += 2
        if count > token:
            multiply_rows(job, first, end, token, kernel, 1, r1)

    return product
