"""The one parallel function of the program: it calls a compiled task on every thread of Numba's team.

A kernel that wants threads is written as a *task*: a C function with the signature `TASK`, which gets the address of
its arguments (an int64 array that its caller fills), its own number and the number of tasks. Only this file is compiled
with `parallel=True`, which costs seconds per function; tasks compile like plain kernels.

Small work should call its task directly with (arguments, 0, 1): waking a thread costs some 15 µs.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import prange, types
from numba.extending import register_jitable

from engine.kernels.compiled import Task, kernel
from engine.kernels.cpu import threads_may_share_team
from engine.kernels.lanes import emitted
from engine.kernels.simd import I64, Builder, Value, load

GATE = None if threads_may_share_team() else threading.Lock()
"""To be held while `TEAM` runs: Numba's simplest threading layer ends the process if two threads start it at once."""


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


def _run_team(task, arguments, count):  # type: ignore[no-untyped-def]
    for index in prange(count):
        call_task(task, arguments, index, count)


TEAM = Task(_run_team, parallel=True)
"""Runs `count` tasks, one per thread, and returns when all are done. A task itself: compiled code can call it."""


@register_jitable
def run_tasks(team, task, arguments, count):  # type: ignore[no-untyped-def]
    """Run `count` tasks with the arguments at an address; `team` is the address of `TEAM`, or 0 for a single task."""
    if count == 1:
        call_task(task, arguments, 0, 1)
    else:
        call_task(team, task, arguments, count)


@kernel("void(intp, intp, int64[::1], intp)")
def _run(team, task, arguments, count):  # type: ignore[no-untyped-def]
    run_tasks(team, task, arguments.ctypes.data, count)


def run(task: Task, arguments: npt.NDArray[np.int64], count: int) -> None:
    """Run `count` tasks over the team, or a single one on this thread."""
    if count == 1:
        _run(0, task.address, arguments, 1)
    elif GATE is None:
        _run(TEAM.address, task.address, arguments, count)
    else:
        with GATE:
            _run(TEAM.address, task.address, arguments, count)
