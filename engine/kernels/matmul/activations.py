"""Activations as the kernels want them: padded to whole steps, in the order of the weights, or quantised to int8.

A preparation is a kernel like any other, with a job whose rows are those of the activations: WEIGHTS is the input,
ROW_BYTES the bytes of its rows; ACTIVATIONS is the prepared memory, ACTIVATION_STRIDE the distance of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.compiled import Task
from engine.kernels.matmul.int8_dot import FACTOR, FACTORS, GROUP_SUMS, RECORD_BYTES, SUMS
from engine.kernels.matmul.job import Field, load_field
from engine.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    I64,
    Builder,
    Value,
    concatenate,
    copy_bytes,
    filled,
    gather,
    load,
    offset,
    reinterpret,
    shuffle,
    splat,
    split,
    stack_buffer,
    store,
    sum_of_lanes,
    to_float,
    vector,
)

_ROUNDING = 12582912.0
"""1.5 · 2^23: added to a small number it leaves the nearest integer (ties to even) in the low bits"""


def _copy_step(b: Builder, source: Value, target: Value) -> None:
    for i in range(16):
        store(b, load(b, offset(b, source, 64 * i), vector(F32, 16), 4), offset(b, target, 64 * i), 4)


def _even_odd_step(b: Builder, source: Value, target: Value) -> None:
    for i in range(0, 256, 128):
        low, high = (load(b, offset(b, source, i + 64 * k), vector(F32, 16), 4) for k in range(2))
        for odd in range(2):
            store(b, shuffle(b, low, range(odd, 32, 2), high), offset(b, target, i + 64 * odd), 4)


def _largest(b: Builder, values: list[Value]) -> Value:
    """The largest magnitude of float vectors as a float; compared as integers, so that a NaN is the largest of all."""
    bits = [b.and_(reinterpret(b, value, I32, 16), filled(I32, 16, 0x7FFFFFFF)) for value in values]

    def larger(p: Value, q: Value) -> Value:
        return b.select(b.icmp_signed(">", p, q), p, q)

    while len(bits) > 1:
        bits = [larger(bits[i], bits[i + 1]) for i in range(0, len(bits), 2)]
    top = bits[0]
    while top.type.count > 1:
        top = larger(*split(b, top, 2))
    return b.bitcast(b.extract_element(top, I32(0)), F32)


def _quantised(b: Builder, values: list[Value]) -> tuple[list[Value], Value]:
    """Quants <16 x i32> and the factor: largest magnitude / 127."""
    factor = b.fdiv(_largest(b, values), F32(127))
    usable = b.fcmp_ordered(">=", factor, F32(2.0**-126))  # below, the inverse could overflow
    inverse = splat(b, b.select(usable, b.fdiv(F32(1), factor), F32(0)), 16)
    quants = []
    for value in values:
        rounded = b.fadd(b.fmul(value, inverse), filled(F32, 16, _ROUNDING))
        quants.append(b.sub(reinterpret(b, rounded, I32, 16), filled(I32, 16, 0x4B400000)))
    return quants, factor


def _store_quants(b: Builder, quants: list[Value], target: Value) -> None:
    for j in range(4):
        part = concatenate(b, [b.trunc(quant, vector(I8, 16)) for quant in quants[4 * j : 4 * j + 4]])
        store(b, part, offset(b, target, 64 * j), 64)


def _load_floats(b: Builder, source: Value) -> list[Value]:
    return [load(b, offset(b, source, 64 * i), vector(F32, 16), 4) for i in range(16)]


def _small_blocks_step(b: Builder, source: Value, target: Value) -> None:
    values = _load_floats(b, source)
    quants, factors, sums = [], [], []
    for i in range(0, 16, 2):
        pair, factor = _quantised(b, values[i : i + 2])
        quants += pair
        factors.append(factor)
        sums.append(sum_of_lanes(b, b.add(*pair)))
    _store_quants(b, quants, target)
    scale = gather(b, F32, factors)
    store(b, scale, offset(b, target, FACTORS), 32)
    store(b, b.fmul(scale, to_float(b, gather(b, I32, sums))), offset(b, target, SUMS), 32)


def _super_block_step(b: Builder, source: Value, target: Value) -> None:
    quants, factor = _quantised(b, _load_floats(b, source))
    _store_quants(b, quants, target)
    sums = gather(b, I32, [sum_of_lanes(b, quant) for quant in quants])
    store(b, b.trunc(sums, vector(I16, 16)), offset(b, target, GROUP_SUMS), 32)
    store(b, factor, offset(b, target, FACTOR), 4)


@dataclass(frozen=True, slots=True)
class Preparation:
    """One step along a row of activations."""

    columns: int
    step_bytes: int
    """bytes of a step when prepared"""
    emit: Callable[[Builder, Value, Value], None]
    """(builder, address of the floats, address of the result)"""


PREPARATIONS: dict[str, Preparation] = {
    "floats": Preparation(256, 1024, _copy_step),
    "even_odd": Preparation(64, 256, _even_odd_step),
    "int8_small": Preparation(256, RECORD_BYTES, _small_blocks_step),
    "int8_super": Preparation(256, RECORD_BYTES, _super_block_step),
}


def prepared_bytes(preparation: str, cols: int) -> int:
    """Bytes of a prepared row of `cols` columns."""
    step = PREPARATIONS[preparation]
    return -(-cols // step.columns) * step.step_bytes


@intrinsic(prefer_literal=True)
def _prepare_rows(_typing, _job, _first, _end, preparation):  # type: ignore[no-untyped-def]
    """Prepare the rows first…end-1 of a job."""
    if not isinstance(preparation, types.Literal):
        return None

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        _emit_rows(builder, preparation.literal_value, *args[:3])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, preparation), generate


def _emit_rows(b: Builder, preparation: str, job: Value, first: Value, end: Value) -> None:
    step = PREPARATIONS[preparation]
    step_floats = 4 * step.columns
    source, row_bytes = load_field(b, job, Field.WEIGHTS), load_field(b, job, Field.ROW_BYTES)
    target, stride = load_field(b, job, Field.ACTIVATIONS), load_field(b, job, Field.ACTIVATION_STRIDE)
    whole, rest = b.udiv(row_bytes, I64(step_floats)), b.urem(row_bytes, I64(step_floats))
    tail = stack_buffer(b, step_floats)
    steps = b.add(whole, b.zext(b.icmp_signed("!=", rest, I64(0)), I64))
    with cgutils.for_range(b, b.sub(end, first)) as rows:
        row = b.add(first, rows.index)
        start, goal = b.add(source, b.mul(row, row_bytes)), b.add(target, b.mul(row, stride))
        copy_bytes(b, tail, b.add(start, b.mul(whole, I64(step_floats))), rest)
        with cgutils.for_range(b, steps) as loop:
            inside = b.icmp_signed("<", loop.index, whole)
            address = b.select(inside, b.add(start, b.mul(loop.index, I64(step_floats))), tail)
            step.emit(b, address, b.add(goal, b.mul(loop.index, I64(step.step_bytes))))


@cache
def preparation_task(preparation: str) -> Task:
    """The task (job, first row, end of rows) of a preparation."""

    def prepare(job, first, end):  # type: ignore[no-untyped-def]
        _prepare_rows(job, first, end, preparation)

    return Task(prepare)
