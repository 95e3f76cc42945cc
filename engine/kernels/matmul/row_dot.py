"""The loop that every decode kernel is: a range of weight rows times a few rows of activations.

The operations on one (weight row, activation row) are one chain over the steps of the row, then one fixed tree over the
lanes: what else is computed beside it, and where a chunk of rows begins, changes no bit.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.matmul.dot import LANES, Dot
from engine.kernels.matmul.dots import dot_of
from engine.kernels.matmul.job import Field, load_field, scale_address
from engine.kernels.simd import (
    F32,
    I64,
    Builder,
    Value,
    copy_bytes,
    stack_buffer,
    store,
    sum_of_lanes,
    vector,
    zero,
)


def _literal(value) -> bool:  # type: ignore[no-untyped-def]
    return isinstance(value, types.Literal)


@intrinsic(prefer_literal=True)
def multiply_rows(_typing, _job, _first, _end, _token, kernel, tokens):  # type: ignore[no-untyped-def]
    """Weight rows first…end-1 times activation rows token…token+tokens-1 of the job, with the arithmetic `kernel`.

    `kernel` and `tokens` are literals. Weight rows that are walked together are far apart from one another: each then
    is a sequential stream of memory for the prefetcher.
    """
    if not all(_literal(value) for value in (kernel, tokens)):
        return None
    dot = dot_of(kernel.literal_value)

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        _emit_rows(builder, dot, tokens.literal_value, args[:4])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp, kernel, tokens), generate


def _emit_rows(b: Builder, dot: Dot, tokens: int, args: list[Value]) -> None:
    streams = dot.rows_together(tokens)
    job, first, end, token = args
    stride = load_field(b, job, Field.ACTIVATION_STRIDE)
    x = b.add(load_field(b, job, Field.ACTIVATIONS), b.mul(token, stride))
    activations = [b.add(x, b.mul(stride, I64(t))) for t in range(tokens)]
    out_stride = load_field(b, job, Field.OUT_STRIDE)
    out = b.add(load_field(b, job, Field.OUT), b.mul(token, out_stride))
    tails = [stack_buffer(b, dot.weight_bytes) for _ in range(streams)]
    # Streams of equal length cover the rows; the last may overlap the one before and then stores the same.
    length = b.udiv(b.add(b.sub(end, first), I64(streams - 1)), I64(streams))
    last = b.sub(end, length)
    with cgutils.for_range(b, length) as loop:
        rows = []
        for r in range(streams):
            start = b.add(first, b.mul(length, I64(r)))
            start = b.select(b.icmp_signed("<", start, last), start, last)
            rows.append(b.add(start, loop.index))
        sums = _emit_steps(b, dot, job, rows, activations, tails)
        for r, row in enumerate(rows):
            target = b.add(out, b.mul(row, I64(4)))
            for t in range(tokens):
                store(b, sum_of_lanes(b, b.load(sums[r * tokens + t])), b.add(target, b.mul(out_stride, I64(t))), 4)


def _emit_steps(
    b: Builder, dot: Dot, job: Value, rows: list[Value], activations: list[Value], tails: list[Value]
) -> list[Value]:
    """The sums of all (weight row, activation row) pairs, as addresses of vectors."""
    tokens = len(activations)
    nothing = zero(vector(F32, LANES))
    sums = [cgutils.alloca_once(b, nothing.type) for _ in range(len(rows) * tokens)]
    for total in sums:
        b.store(nothing, total)
    weights = load_field(b, job, Field.WEIGHTS)
    row_bytes = load_field(b, job, Field.ROW_BYTES)
    steps, tail = load_field(b, job, Field.STEPS), load_field(b, job, Field.TAIL_BYTES)
    starts = [b.add(weights, b.mul(row, row_bytes)) for row in rows]
    whole = _copy_tails(b, dot, starts, tails, steps, tail)
    with cgutils.for_range(b, steps) as loop:
        done = b.mul(loop.index, I64(dot.weight_bytes))
        x = [b.add(address, b.mul(loop.index, I64(dot.activation_bytes))) for address in activations]
        inside = b.icmp_signed("<", loop.index, whole)
        column = b.mul(loop.index, I64(dot.columns))
        for r, start in enumerate(starts):
            address = b.select(inside, b.add(start, done), tails[r])
            mine = sums[r * tokens : (r + 1) * tokens]
            scale = scale_address(b, job, rows[r], column)
            totals = dot.emit(b, [b.load(total) for total in mine], address, x, scale)
            for total, value in zip(mine, totals, strict=True):
                b.store(value, total)
    return sums


def _copy_tails(b: Builder, dot: Dot, starts: list[Value], tails: list[Value], steps: Value, tail: Value) -> Value:
    """Copy what a row has beyond its whole steps into zeroed buffers; returns the number of whole steps."""
    has_tail = b.icmp_signed("!=", tail, I64(0))
    whole = b.sub(steps, b.zext(has_tail, I64))
    with b.if_then(has_tail, likely=False):
        for start, buffer in zip(starts, tails, strict=True):
            copy_bytes(b, buffer, b.add(start, b.mul(whole, I64(dot.weight_bytes))), tail)
    return whole
