"""The one parallel function of the program: it calls a compiled task on every thread of Numba's team.

A kernel that wants threads is written as a *task*: a `numba.cfunc` with the signature `TASK`, which gets the address of
its arguments (an int64 array that its caller fills), its own number and the number of tasks. Only this file is compiled
with `parallel=True`, which costs seconds per function; tasks compile like plain kernels.

Small work should call its task directly with (arguments, 0, 1): waking a thread costs some 15 µs.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, prange, types

from engine.kernels.compiled import Task, kernel
from engine.kernels.cpu import threads_may_share_team
from engine.kernels.lanes import emitted
from engine.kernels.simd import I64, Builder, Value, load

GATE: AbstractContextManager[Any] = nullcontext() if threads_may_share_team() else threading.Lock()
"""Held by whoever calls `run_team`: Numba's simplest threading layer ends the process if two threads do so at once."""


@emitted(types.void, types.intp, types.intp, types.intp, types.intp)
def call_task(b: Builder, task: Value, arguments: Value, index: Value, count: Value) -> None:
    """Call the compiled function at address `task`."""
    function = ir.FunctionType(ir.VoidType(), [I64, I64, I64])
    b.call(b.inttoptr(task, function.as_pointer()), [arguments, index, count])


@emitted(types.intp, types.intp)
def take_number(b: Builder, counter: Value) -> Value:
    """The int64 at address `counter`, raised by one for the next who asks: how tasks share out their work."""
    return b.atomic_rmw("add", b.inttoptr(counter, I64.as_pointer()), I64(1), "monotonic")


@emitted(types.intp, types.intp, types.intp)
def argument(b: Builder, arguments: Value, index: Value) -> Value:
    """Argument number `index` of a task, an int64."""
    return load(b, b.add(arguments, b.mul(index, I64(8))), I64, 8)


@njit("void(intp, intp, intp)", parallel=True, nogil=True, cache=True)
def run_team(task, arguments, count):  # type: ignore[no-untyped-def]
    """Run `count` tasks, one per thread; returns when all are done."""
    for index in prange(count):
        call_task(task, arguments, index, count)


@kernel("void(intp, int64[::1])")
def _run_here(task, arguments):  # type: ignore[no-untyped-def]
    call_task(task, arguments.ctypes.data, 0, 1)


def run(task: Task, arguments: npt.NDArray[np.int64], count: int) -> None:
    """Run `count` tasks over the team, or a single one on this thread."""
    if count == 1:
        _run_here(task.address, arguments)
    else:
        with GATE:
            run_team(task.address, arguments.ctypes.data, count)
