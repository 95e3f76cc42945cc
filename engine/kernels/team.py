"""The one parallel function of the program: it calls a compiled task on every thread of Numba's team.

A kernel that wants threads is written as a *task*: a `numba.cfunc` with the signature `TASK`, which gets the address of
its arguments (an int64 array that its caller fills), its own number and the number of tasks. Only this file is compiled
with `parallel=True`, which costs seconds per function; tasks compile like plain kernels.

Small work should call its task directly with (arguments, 0, 1): waking a thread costs some 15 µs.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

TASK = types.void(types.intp, types.intp, types.intp)
"""(address of the arguments, number of this task, number of tasks)"""

_I64 = ir.IntType(64)


@intrinsic
def call_task(_typing, task, arguments, index, count):  # type: ignore[no-untyped-def]
    """Call the compiled function at address `task`."""

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.VoidType(), [_I64, _I64, _I64])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [args[1], args[2], args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), generate


@njit("void(intp, intp, intp)", parallel=True, nogil=True, cache=True)
def run_team(task, arguments, count):  # type: ignore[no-untyped-def]
    """Run `count` tasks, one per thread; returns when all are done."""
    for index in prange(count):  # type: ignore[attr-defined]
        call_task(task, arguments, index, count)
