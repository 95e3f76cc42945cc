"""Compiled kernels by name, and the task that deals their work out to the threads."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cfunc, njit, types
from numba.extending import intrinsic

from engine.kernels.matmul.dots import dot_of
from engine.kernels.matmul.job import JOB_FIELDS, Field, read_field
from engine.kernels.matmul.row_dot import multiply_rows
from engine.kernels.simd import I64
from engine.kernels.team import TASK, call_task, run_team

_KERNEL, _CHUNKS, _CHUNK_ROWS = int(Field.KERNEL), int(Field.CHUNKS), int(Field.CHUNK_ROWS)
_ROWS, _COUNT = int(Field.ROWS), int(Field.COUNT)
_JOB_BYTES = 8 * JOB_FIELDS
_COUNTER_FIELDS = 8  # a cache line for the counter that all threads write, another for the number of jobs
_HEADER_BYTES = 2 * 8 * _COUNTER_FIELDS


@cache
def kernel_address(kernel: str) -> int:
    """Address of the compiled kernel (job, first weight row, end of rows); compiles it or loads it from the cache.

    It goes through the activation rows in passes of 8, 4, 2 and 1, each of which gives a row the same bits.
    """
    address: int = (_wide_kernel if len(dot_of(kernel).streams) > 3 else _narrow_kernel)(kernel).address
    return address


def _narrow_kernel(kernel: str):  # type: ignore[no-untyped-def]
    r4, r2, r1 = (rows for _, rows in dot_of(kernel).streams)

    @cfunc(TASK, cache=True)
    def run(job, first, end):  # type: ignore[no-untyped-def]
        count = read_field(job, _COUNT)
        token = 0
        while count - token >= 4:
            multiply_rows(job, first, end, token, kernel, 4, r4)
            token += 4
        if count - token >= 2:
            multiply_rows(job, first, end, token, kernel, 2, r2)
            token += 2
        if count > token:
            multiply_rows(job, first, end, token, kernel, 1, r1)

    return run


def _wide_kernel(kernel: str):  # type: ignore[no-untyped-def]
    r8, r4, r2, r1 = (rows for _, rows in dot_of(kernel).streams)

    @cfunc(TASK, cache=True)
    def run(job, first, end):  # type: ignore[no-untyped-def]
        count = read_field(job, _COUNT)
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

    return run


@intrinsic
def _next_chunk(_typing, counter):  # type: ignore[no-untyped-def]
    """The number at address `counter`, which is raised by one for the next who asks."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        return builder.atomic_rmw("add", pointer, I64(1), "monotonic")

    return types.intp(types.intp), generate


@cache
def _dealer_address() -> int:
    @cfunc(TASK, cache=True)
    def deal(plan, _index, _tasks):  # type: ignore[no-untyped-def]
        jobs = read_field(plan, _COUNTER_FIELDS)
        while True:
            chunk = _next_chunk(plan)
            job = plan + _HEADER_BYTES
            left = jobs
            while left > 0 and chunk >= read_field(job, _CHUNKS):
                chunk -= read_field(job, _CHUNKS)
                job += _JOB_BYTES
                left -= 1
            if left == 0:
                return
            rows = read_field(job, _CHUNK_ROWS)
            first = chunk * rows
            call_task(read_field(job, _KERNEL), job, first, min(first + rows, read_field(job, _ROWS)))

    address: int = deal.address
    return address


@njit("void(int64[::1], intp, intp)", nogil=True, cache=True)
def _run_plan(plan, dealer, threads):  # type: ignore[no-untyped-def]
    if threads == 1:
        call_task(dealer, plan.ctypes.data, 0, 1)
    else:
        run_team(dealer, plan.ctypes.data, threads)


def run_jobs(jobs: list[int], threads: int) -> None:
    """Work through jobs, `JOB_FIELDS` numbers each, on `threads` threads.

    Threads take chunks of rows from a common counter, so that one that is held up holds up no other.
    """
    plan = np.array([0] * _COUNTER_FIELDS + [len(jobs) // JOB_FIELDS] + [0] * (_COUNTER_FIELDS - 1) + jobs, np.int64)
    _run_plan(plan, _dealer_address(), threads)
