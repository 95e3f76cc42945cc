"""Rows of a weight matrix as float32: embedding lookups, and the reference for every other kernel."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.compiled import Kernel, kernel
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matmul.checks import check_matrix
from engine.kernels.matmul.decoder import Decoder
from engine.kernels.matmul.decoders import decoder_of
from engine.kernels.matrix import Matrix
from engine.kernels.simd import I64, Builder, Value, copy_bytes, offset, stack_buffer, store


def dequantise_rows(matrix: Matrix, ids: npt.NDArray[np.int64], out: npt.NDArray[np.float32]) -> None:
    """out [n, K] = the rows `ids` (int64 [n]) of the matrix, exactly as the format defines them.

    Raises ValueError when shapes, types or the number of bytes do not fit, IndexError for an id that is no row.
    """
    check_matrix(matrix)
    if out.dtype != np.float32 or not out.flags.c_contiguous or out.shape != (len(ids), matrix.cols):
        raise ValueError(
            f"the output must be C-contiguous float32 {(len(ids), matrix.cols)}, not {out.dtype} {out.shape}"
        )
    rows = np.ascontiguousarray(ids, np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() < matrix.rows:
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise IndexError(f"row {wrong} is not in a matrix of {matrix.rows} rows")
    size = row_bytes(matrix.format, matrix.cols)
    scale, blocks = 0, 0
    if matrix.scale is not None:
        scale, blocks = matrix.scale.ctypes.data, matrix.scale.shape[1]
    row_decoder(matrix.format)(matrix.data.ctypes.data, size, scale, blocks, rows, out)


@cache
def row_decoder(format_name: str) -> Kernel:
    """The compiled function (address of the data, row bytes, address of the scales, scales a row, ids, out)."""
    layout = FORMATS[format_name]
    block_bytes = layout.block_bytes

    @kernel("void(intp, intp, intp, intp, int64[::1], float32[:, ::1])")
    def decode_rows(data, size, scale, scales, ids, out):  # type: ignore[no-untyped-def]
        for i in range(ids.size):
            factors = scale + ids[i] // 128 * scales * 4
            target = out.ctypes.data + i * out.shape[1] * 4
            decode_row(data + ids[i] * size, factors, target, size // block_bytes, format_name)

    return decode_rows


@intrinsic(prefer_literal=True)
def decode_row(_typing, _source, _scale, _target, _blocks, format_name):  # type: ignore[no-untyped-def]
    """Write `blocks` blocks of the format (a literal) at address `source` as float32 to address `target`."""
    if not isinstance(format_name, types.Literal):
        return None
    decoder = decoder_of(format_name.literal_value)
    layout = FORMATS[format_name.literal_value]

    def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
        _emit_row(builder, decoder, decoder.columns // layout.block_elements, layout.block_bytes, args[:4])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp, format_name), generate


def _emit_row(b: Builder, decoder: Decoder, step_blocks: int, block_bytes: int, args: list[Value]) -> None:
    """Whole steps go straight to the target; what is left is decoded from and into buffers of a whole step."""
    source, scale, target, blocks = args
    step_bytes = 4 * decoder.columns
    whole = b.udiv(blocks, I64(step_blocks))
    rest = b.urem(blocks, I64(step_blocks))
    tail_source, tail_target = stack_buffer(b, decoder.weight_bytes), stack_buffer(b, step_bytes)
    has_tail = b.icmp_signed("!=", rest, I64(0))
    tail_start = b.add(source, b.mul(whole, I64(decoder.weight_bytes)))
    copy_bytes(b, tail_source, tail_start, b.mul(rest, I64(block_bytes)))
    with cgutils.for_range(b, b.add(whole, b.zext(has_tail, I64))) as loop:
        inside = b.icmp_signed("<", loop.index, whole)
        bytes_at = b.select(inside, b.add(source, b.mul(loop.index, I64(decoder.weight_bytes))), tail_source)
        floats_at = b.select(inside, b.add(target, b.mul(loop.index, I64(step_bytes))), tail_target)
        factor = b.add(scale, b.mul(b.lshr(b.mul(loop.index, I64(decoder.columns)), I64(7)), I64(4)))
        for i, values in enumerate(decoder.emit(b, bytes_at, factor)):
            store(b, values, offset(b, floats_at, 64 * i), 4)
    tail_bytes = b.mul(rest, I64(step_bytes // step_blocks))
    copy_bytes(b, b.add(target, b.mul(whole, I64(step_bytes))), tail_target, tail_bytes)
