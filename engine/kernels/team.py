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
from numba.extending import intrinsic

from engine.kernels.compiled import TASK, Task, kernel
from engine.kernels.cpu import threads_may_share_team

_I64 = ir.IntType(64)

GATE: AbstractContextManager[Any] = nullcontext() if threads_may_share_team() else threading.Lock()
"""Held by whoever calls `run_team`: Numba's simplest threading layer ends the process if two threads start work at once."""


@intrinsic
def call_task(_typing, task, arguments, index, count):  # type: ignore[no-untyped-def]
    """Call the compiled function at address `task`."""

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.VoidType(), [_I64, _I64, _I64])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [args[1], args[2], args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), generate


@intrinsic
def take_number(_typing, counter):  # type: ignore[no-untyped-def]
    """The int64 at address `counter`, raised by one for the next who asks: how tasks share out their work."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", builder.inttoptr(args[0], _I64.as_pointer()), _I64(1), "monotonic")

    return types.intp(types.intp), generate


@intrinsic
def argument(_typing, arguments, index):  # type: ignore[no-untyped-def]
    """Argument number `index` of a task, an int64."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        address = builder.add(args[0], builder.mul(args[1], _I64(8)))
        return builder.load(builder.inttoptr(address, _I64.as_pointer()))

    return types.intp(types.intp, types.intp), generate


@njit("void(intp, intp, intp)", parallel=True, nogil=True, cache=True)
def run_team(task, arguments, count):  # type: ignore[no-untyped-def]
    """Run `count` tasks, one per thread; returns when all are done."""
    for index in prange(count):  # type: ignore[attr-defined]
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
