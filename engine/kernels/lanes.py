"""Sixteen float32 numbers as one value of Numba code: `Lanes`.

Kernels that add numbers up are written with it, because the compiler may not reorder additions by itself and because
sixteen lanes with a fixed order give the same bits on every processor: a narrower machine takes several registers.
Arithmetic operators work lane by lane; no fast-math flag is set, nothing is fused unless `fma` says so.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from engine.kernels import simd
from engine.kernels.simd import F32, I16, I32, I64, Builder, Value

LANES = 16
VECTOR = simd.vector(F32, LANES)
_NUMBERS = simd.constant(I64, range(LANES))


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


Lanes = _LanesType()
"""The Numba type"""


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, VECTOR)


def emitted(result: Any, *parameters: Any) -> Callable[[Callable[..., Value]], Any]:
    """Decorator: a function that emits LLVM code becomes one that Numba code calls, with these types."""

    def declare(emit: Callable[..., Value]) -> Any:
        def define(_typing, *_types):  # type: ignore[no-untyped-def]
            def generate(context, builder, _signature, values):  # type: ignore[no-untyped-def]
                value = emit(builder, *values)
                return context.get_dummy_value() if value is None else value

            return result(*parameters), generate

        # Numba counts the parameters by the signature; the builder stands where its typing context does.
        define.__name__, define.__doc__ = emit.__name__, emit.__doc__
        define.__signature__ = inspect.signature(emit)  # type: ignore[attr-defined]
        return intrinsic(define)

    return declare


def _operator(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Typing(ConcreteTemplate):
        cases = [signature(Lanes, Lanes, Lanes)]  # noqa: RUF012 - the form Numba asks for

    @lower_builtin(symbol, Lanes, Lanes)
    def _lower(_context, builder, _signature, values):  # type: ignore[no-untyped-def]
        return getattr(builder, instruction)(*values)


for _symbol, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
    (operator.iadd, "fadd"), (operator.isub, "fsub"), (operator.imul, "fmul"), (operator.itruediv, "fdiv"),
):  # fmt: skip
    _operator(_symbol, _instruction)


# ---- memory; addresses are integers, float32 need only be aligned as such ----


@emitted(Lanes, types.intp)
def load(b: Builder, address: Value) -> Value:
    """Sixteen floats from `address`."""
    return simd.load(b, address, VECTOR, 4)


@intrinsic(prefer_literal=True)
def load_quarter(_typing, address, first):  # type: ignore[no-untyped-def]
    """Every fourth of the 64 floats at `address`, from number `first` (a literal) on."""
    numbers = range(first.literal_value, 4 * LANES, 4)

    def generate(_context, builder, _signature, values):  # type: ignore[no-untyped-def]
        block = simd.load(builder, values[0], simd.vector(F32, 4 * LANES), 4)
        return simd.shuffle(builder, block, numbers)

    return Lanes(address, first), generate


@emitted(types.void, types.intp, Lanes)
def store(b: Builder, address: Value, value: Value) -> None:
    """Sixteen floats to `address`."""
    simd.store(b, value, address, 4)


def _first(b: Builder, count: Value) -> Value:
    """Mask of the lanes below `count`."""
    return b.icmp_signed("<", _NUMBERS, simd.splat(b, count, LANES))


@emitted(Lanes, types.intp, types.intp)
def load_first(b: Builder, address: Value, count: Value) -> Value:
    """`count` floats from `address`, zero in the other lanes; memory beyond them is not touched."""
    name = "llvm.masked.load.v16f32.p0"
    arguments = [b.inttoptr(address, VECTOR.as_pointer()), I32(4), _first(b, count), simd.zero(VECTOR)]
    return _call(b, name, VECTOR, arguments)


@emitted(types.void, types.intp, Lanes, types.intp)
def store_first(b: Builder, address: Value, value: Value, count: Value) -> None:
    """The first `count` lanes to `address`."""
    name = "llvm.masked.store.v16f32.p0"
    _call(b, name, ir.VoidType(), [value, b.inttoptr(address, VECTOR.as_pointer()), I32(4), _first(b, count)])


def _call(b: Builder, name: str, result: ir.Type, arguments: list[Value]) -> Value:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


@emitted(types.float32, types.intp)
def load_float(b: Builder, address: Value) -> Value:
    """One float from `address`."""
    return simd.load(b, address, F32, 4)


@emitted(types.void, types.intp, types.float32)
def store_float(b: Builder, address: Value, value: Value) -> None:
    """One float to `address`."""
    simd.store(b, value, address, 4)


@emitted(types.void, types.intp, types.intp, types.intp)
def copy_bytes(b: Builder, target: Value, source: Value, count: Value) -> None:
    """`count` bytes from one address to another."""
    simd.copy_bytes(b, target, source, count)


@emitted(types.intp, types.intp)
def load_integer(b: Builder, address: Value) -> Value:
    """One int64 from `address`."""
    return simd.load(b, address, I64, 8)


# ---- lanes ----


@emitted(Lanes, types.float32)
def splat(b: Builder, value: Value) -> Value:
    """The same number in every lane."""
    return simd.splat(b, value, LANES)


@emitted(Lanes, types.intp)
def splat_from(b: Builder, address: Value) -> Value:
    """The float at `address` in every lane."""
    return simd.splat(b, simd.load(b, address, F32, 4), LANES)


@emitted(types.float32, Lanes, types.intp)
def lane(b: Builder, value: Value, index: Value) -> Value:
    """One lane, whose number may be a run-time value."""
    return b.extract_element(value, index)


@emitted(Lanes, Lanes, types.intp, types.float32)
def keep_first(b: Builder, value: Value, count: Value, other: Value) -> Value:
    """The first `count` lanes of `value`, the number `other` in the rest."""
    return b.select(_first(b, count), value, simd.splat(b, other, LANES))


# ---- arithmetic ----


@emitted(Lanes, Lanes, Lanes, Lanes)
def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z with one rounding."""
    return simd.fma(b, x, y, z)


@emitted(Lanes, Lanes, Lanes)
def larger(b: Builder, x: Value, y: Value) -> Value:
    """y where y > x, else x: NaN in y is passed over."""
    return b.select(b.fcmp_ordered(">", y, x), y, x)


@emitted(types.boolean, Lanes, Lanes)
def any_greater(b: Builder, x: Value, y: Value) -> Value:
    """Whether x > y in some lane."""
    mask = b.bitcast(b.fcmp_ordered(">", x, y), I16)
    return b.icmp_unsigned("!=", mask, I16(0))


@emitted(types.float32, Lanes)
def sum_of_lanes(b: Builder, value: Value) -> Value:
    """The sum by a fixed tree: lane i + lane i + 8, then 4, 2, 1."""
    return simd.sum_of_lanes(b, value)


@emitted(types.float32, Lanes)
def largest_lane(b: Builder, value: Value) -> Value:
    """The largest lane; NaN may be passed over."""
    while value.type.count > 1:
        low, high = simd.split(b, value, 2)
        value = b.select(b.fcmp_ordered(">", high, low), high, low)
    return b.extract_element(value, I32(0))


@emitted(types.void, types.intp)
def prefetch(b: Builder, address: Value) -> None:
    """Start fetching the cache line at `address`."""
    pointer = b.inttoptr(address, simd.I8.as_pointer())
    _call(b, "llvm.prefetch.p0", ir.VoidType(), [pointer, I32(0), I32(3), I32(1)])
