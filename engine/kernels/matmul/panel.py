"""Panels: some rows of weights decoded once, in a worker's own memory, for many rows of activations.

A panel begins with the record of a job like the one it serves, whose weights are the panel's own rows; decoded rows
follow. The task that multiplies panels then needs to know nothing of the format.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.matmul.dots import decoder_of_kernel, has_float_panels, read_operands
from engine.kernels.matmul.float_weights import STEP as FLOAT_STEP
from engine.kernels.matmul.job import JOB_FIELDS, Field, load_field, scale_address
from engine.kernels.matmul.operands import Kind, kind_of, store_operands
from engine.kernels.simd import I64, Builder, Value, copy_bytes, offset, stack_buffer, store

RECORD_SPACE = 192
"""bytes of the record at a panel's beginning"""
_PANEL_BYTES = 96 << 10
"""decoded weights that leave room in a second-level cache"""
_MOST_ROWS = 32


@cache
def kind_of_kernel(kernel: str) -> Kind:
    """What the format's weights are when decoded: found by decoding into a module that is thrown away."""
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [I64]), "probe")
    return kind_of(read_operands(ir.IRBuilder(function.append_basic_block()), kernel, function.args[0]))


def _step_bytes(kernel: str) -> int:
    """Bytes of a decoded step."""
    if has_float_panels(kernel):
        return 4 * decoder_of_kernel(kernel).columns
    return kind_of_kernel(kernel).bytes


def panel_row_bytes(kernel: str, cols: int) -> int:
    """Bytes of a decoded row."""
    return -(-cols // decoder_of_kernel(kernel).columns) * _step_bytes(kernel)


def panel_rows(kernel: str, cols: int) -> int:
    """How many rows a panel holds."""
    return max(1, min(_MOST_ROWS, _PANEL_BYTES // panel_row_bytes(kernel, cols)))


@intrinsic(prefer_literal=True)
def fill_panel(_typing, _job, _first, _end, kernel):  # type: ignore[no-untyped-def]
    """Decode the weight rows first…end-1 of the job into its panel, and write the panel's record."""
    if not isinstance(kernel, types.Literal):
        return None

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        _emit_record(builder, kernel.literal_value, args[0], args[1])
        _emit_rows(builder, kernel.literal_value, *args[:3])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, kernel), generate


def _emit_record(b: Builder, kernel: str, job: Value, first: Value) -> None:
    panel, steps = load_field(b, job, Field.PANEL), load_field(b, job, Field.STEPS)
    copy_bytes(b, panel, job, I64(8 * JOB_FIELDS))
    fields = {
        Field.WEIGHTS: offset(b, panel, RECORD_SPACE),
        Field.ROW_BYTES: b.mul(steps, I64(_step_bytes(kernel))),
        Field.TAIL_BYTES: I64(0),
        Field.OUT: b.add(load_field(b, job, Field.OUT), b.mul(first, I64(4))),
    }
    if has_float_panels(kernel):
        fields[Field.STEPS] = b.mul(steps, I64(decoder_of_kernel(kernel).columns // FLOAT_STEP))
    for field, value in fields.items():
        store(b, value, offset(b, panel, 8 * field), 8)


def _emit_rows(b: Builder, kernel: str, job: Value, first: Value, end: Value) -> None:
    decoder, step_bytes = decoder_of_kernel(kernel), _step_bytes(kernel)
    source, row_bytes = load_field(b, job, Field.WEIGHTS), load_field(b, job, Field.ROW_BYTES)
    steps, tail_bytes = load_field(b, job, Field.STEPS), load_field(b, job, Field.TAIL_BYTES)
    panel = offset(b, load_field(b, job, Field.PANEL), RECORD_SPACE)
    tail = stack_buffer(b, decoder.weight_bytes)
    whole = b.udiv(row_bytes, I64(decoder.weight_bytes))
    with cgutils.for_range(b, b.sub(end, first)) as rows:
        row = b.add(first, rows.index)
        start = b.add(source, b.mul(row, row_bytes))
        target = b.add(panel, b.mul(b.mul(rows.index, steps), I64(step_bytes)))
        copy_bytes(b, tail, b.add(start, b.mul(whole, I64(decoder.weight_bytes))), tail_bytes)
        with cgutils.for_range(b, steps) as loop:
            inside = b.icmp_signed("<", loop.index, whole)
            address = b.select(inside, b.add(start, b.mul(loop.index, I64(decoder.weight_bytes))), tail)
            goal = b.add(target, b.mul(loop.index, I64(step_bytes)))
            if has_float_panels(kernel):
                scale = scale_address(b, job, row, b.mul(loop.index, I64(decoder.columns)))
                for i, values in enumerate(decoder.emit(b, address, scale)):
                    store(b, values, offset(b, goal, 64 * i), 64)
            else:
                store_operands(b, read_operands(b, kernel, address), goal)
