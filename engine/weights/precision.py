"""Quantising while loading: what the weights of a float checkpoint become in memory, and how many bytes that takes.

Matrices of F32, F16 and BF16 are rounded to Q8_0 or Q4_0; what is stored quantised stays as it is, and so do the small
matrices of which everything else depends (`roles.keeps_precision`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import OptionError
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matrix import Matrix
from engine.weights.allocation import amount
from engine.weights.buffers import aligned_buffer
from engine.weights.roles import Role, keeps_precision, role_of
from engine.weights.units import UnitTensor

if TYPE_CHECKING:
    from engine.files.tensor_spec import TensorSpec
    from engine.weights.sizes import Placement

FORMAT_OF = {"q8": "Q8_0", "q4": "Q4_0"}
_LINE = 64  # bytes: where a matrix begins in its buffer


def format_in_memory(name: str, format_name: str, columns: int, precision: str | None) -> str:
    """The format of a matrix of this name (canonical, or without its unit's prefix) once it is loaded."""
    if precision is None or format_name not in ("F32", "F16", "BF16") or keeps_precision(name):
        return format_name
    chosen = FORMAT_OF[precision]
    return format_name if columns % FORMATS[chosen].block_elements else chosen


def formats_in_memory(specs: Mapping[str, TensorSpec], precision: str | None) -> set[str]:
    """All formats that the tensors `specs` (by canonical name) have once they are loaded."""
    matrices = {Role.MATRIX, Role.EXPERT, Role.TABLE}
    return {
        format_in_memory(name, spec.format, spec.shape[-1], precision) if role_of(name) in matrices else spec.format
        for name, spec in specs.items()
    }


def tensor_bytes(tensor: UnitTensor, precision: str | None) -> int:
    """Bytes of a unit's matrix in memory."""
    format_name = format_in_memory(tensor.name, tensor.format, tensor.cols, precision)
    return tensor.rows * row_bytes(format_name, tensor.cols)


def bytes_in_memory(placement: Placement, precision: str) -> int:
    """Bytes of everything once it is loaded."""
    total = placement.sizes.vectors
    for unit in placement.units:
        matrices = [*unit.tensors, *(tensor for part in unit.parts for tensor in part.tensors)]
        total += sum(_padded(tensor_bytes(tensor, precision)) for tensor in matrices)
    for name in placement.tables:
        rows, columns = placement.specs[name].shape
        format_name = format_in_memory(name, placement.specs[name].format, columns, precision)
        total += _padded(rows * row_bytes(format_name, columns))
    return total


def check_budget(placement: Placement, precision: str, budget: int | None) -> int:
    """`bytes_in_memory`; OptionError unless they fit into the budget: what is streamed cannot be quantised too."""
    needed = bytes_in_memory(placement, precision)
    if budget is not None and needed > budget:
        raise OptionError(
            f"Quantised to {precision} this model takes {amount(needed)}, but the memory budget is {amount(budget)}:"
            " write a smaller file with `quantize`, which can be streamed."
        )
    return needed


def lowered(matrices: Mapping[str, Matrix], precision: str) -> dict[str, Matrix]:
    """The matrices of a unit in the formats that `precision` gives them, in a buffer of their own: the one that was
    read is free when the old ones are dropped."""
    from engine.quantise.convert import convert

    formats = {name: format_in_memory(name, m.format, m.cols, precision) for name, m in matrices.items()}
    sizes = {name: m.rows * row_bytes(formats[name], m.cols) for name, m in matrices.items()}
    buffer = aligned_buffer(sum(map(_padded, sizes.values())))
    found, begin = {}, 0
    for name, matrix in matrices.items():
        place = buffer[begin : begin + sizes[name]]
        begin += _padded(sizes[name])
        if formats[name] != matrix.format:
            found[name] = convert(matrix, formats[name], place)
        else:
            np.copyto(place, matrix.data)
            found[name] = Matrix(matrix.format, matrix.rows, matrix.cols, place, matrix.scale)
    return found


def _padded(nbytes: int) -> int:
    return -(-nbytes // _LINE) * _LINE
