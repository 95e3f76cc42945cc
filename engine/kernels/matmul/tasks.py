"""Compiled kernels by name, and the task that deals their work out to the threads."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.kernels.compiled import Task
from engine.kernels.matmul.dots import dot_of
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.matmul.row_dot import multiply_rows
from engine.kernels.team import argument, call_task, run, take_number

_KERNEL, _CHUNKS, _CHUNK_ROWS = int(Field.KERNEL), int(Field.CHUNKS), int(Field.CHUNK_ROWS)
_ROWS, _COUNT = int(Field.ROWS), int(Field.COUNT)
_JOB_BYTES = 8 * JOB_FIELDS
_COUNTER_FIELDS = 8  # a cache line for the counter that all threads write, another for the number of jobs
_HEADER_BYTES = 2 * 8 * _COUNTER_FIELDS


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


def _deal(plan, _index, _tasks):  # type: ignore[no-untyped-def]
    jobs = argument(plan, _COUNTER_FIELDS)
    while True:
        chunk = take_number(plan)
        job = plan + _HEADER_BYTES
        left = jobs
        while left > 0 and chunk >= argument(job, _CHUNKS):
            chunk -= argument(job, _CHUNKS)
            job += _JOB_BYTES
            left -= 1
        if left == 0:
            return
        rows = argument(job, _CHUNK_ROWS)
        first = chunk * rows
        call_task(argument(job, _KERNEL), job, first, min(first + rows, argument(job, _ROWS)))


DEALER = Task(_deal)
"""Takes chunks of rows, of one job after the other, from a counter that all threads share."""


def run_jobs(jobs: list[int], threads: int) -> None:
    """Work through jobs, `JOB_FIELDS` numbers each, on `threads` threads.

    Chunks come from a common counter, so that a thread that is held up holds up no other.
    """
    header = [0] * (2 * _COUNTER_FIELDS)
    header[_COUNTER_FIELDS] = len(jobs) // JOB_FIELDS
    run(DEALER, np.array(header + jobs, np.int64), threads)
