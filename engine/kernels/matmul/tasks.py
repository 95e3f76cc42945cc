"""Compiled kernels by name: each goes through the rows of activations in passes that give a row the same bits."""

from __future__ import annotations

from functools import cache

from engine.kernels.compiled import Task
from engine.kernels.matmul.dots import has_float_panels, panel_kernel_name, rows_for_panels
from engine.kernels.matmul.job import Field
from engine.kernels.matmul.panel import fill_panel, kind_of_kernel
from engine.kernels.matmul.row_dot import multiply_rows
from engine.kernels.simd import has
from engine.kernels.team import argument, call_task

_COUNT = int(Field.COUNT)
_PANEL, _PANEL_ROWS, _PANEL_KERNEL = int(Field.PANEL), int(Field.PANEL_ROWS), int(Field.PANEL_KERNEL)


@cache
def kernel_task(kernel: str) -> Task:
    """The task (job, first weight row, end of weight rows) of a kernel that `dots` names."""
    if rows_for_panels(kernel):
        return Task(_passes_or_panels(kernel))
    # With 32 registers eight rows of activations keep their accumulators in them, with 16 registers four.
    return Task(_passes_of_8(kernel) if has("avx512f") else _passes_of_4(kernel))


def panel_task(kernel: str) -> Task:
    """The task that multiplies the panels of `kernel`; formats of one kind share it."""
    return kernel_task("F32" if has_float_panels(kernel) else panel_kernel_name(kind_of_kernel(kernel)))


def _passes_or_panels(kernel: str):  # type: ignore[no-untyped-def]
    panels_from = rows_for_panels(kernel)

    def product(job, first, end):  # type: ignore[no-untyped-def]
        count = argument(job, _COUNT)
        token = 0
        if count >= panels_from:
            panel, rows = argument(job, _PANEL), argument(job, _PANEL_ROWS)
            for start in range(first, end, rows):
                stop = min(start + rows, end)
                fill_panel(job, start, stop, kernel)
                call_task(argument(job, _PANEL_KERNEL), panel, 0, stop - start)
            return
        while count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4)
            token += 4
        if count - token == 3:
            multiply_rows(job, first, end, token, kernel, 3)
        elif count - token == 2:
            multiply_rows(job, first, end, token, kernel, 2)
        elif count - token == 1:
            multiply_rows(job, first, end, token, kernel, 1)

    return product


def _passes_of_4(kernel: str):  # type: ignore[no-untyped-def]
    def product(job, first, end):  # type: ignore[no-untyped-def]
        count = argument(job, _COUNT)
        token = 0
        while count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4)
            token += 4
        if count - token == 3:
            multiply_rows(job, first, end, token, kernel, 3)
        elif count - token == 2:
            multiply_rows(job, first, end, token, kernel, 2)
        elif count - token == 1:
            multiply_rows(job, first, end, token, kernel, 1)

    return product


def _passes_of_8(kernel: str):  # type: ignore[no-untyped-def]
    def product(job, first, end):  # type: ignore[no-untyped-def]
        count = argument(job, _COUNT)
        token = 0
        while count - token >= 8:
            multiply_rows(job, first, end, token, kernel, 8)
            token += 8
        if count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4)
            token += 4
        if count - token == 3:
            multiply_rows(job, first, end, token, kernel, 3)
        elif count - token == 2:
            multiply_rows(job, first, end, token, kernel, 2)
        elif count - token == 1:
            multiply_rows(job, first, end, token, kernel, 1)

    return product
