"""`d2t`: which token each row of a trimmed draft head stands for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.errors import SidecarError
from engine.files.bounded import FileReader
from engine.files.tensor_spec import TensorSpec

IntArray = npt.NDArray[np.int64]

_DTYPES = {"I32": "<i4", "I64": "<i8"}


def read_draft_ids(spec: TensorSpec, rows: int, vocabulary: int, *, offsets_allowed: bool) -> IntArray:
    """Token ids [rows] of a `d2t` tensor of `rows` 32- or 64-bit integers.

    Ids are absolute, or (EAGLE-3's form, in safetensors only) offsets: id = row + value. Offsets of a sorted vocabulary
    never fall and repeat; absolute ids never repeat: that tells them apart.
    Raises SidecarError for another length or type, ids outside the vocabulary, and ids that occur twice.
    """
    if spec.format not in _DTYPES:
        raise SidecarError(f"{spec.file_name} in {spec.file.name} has type {spec.format}; I32 or I64 was expected.")
    if not spec.elements:
        raise SidecarError(f"{spec.file_name} in {spec.file.name} is empty: the draft head has no token ids.")
    if spec.shape != (rows,):
        raise SidecarError(
            f"{spec.file_name} in {spec.file.name} has shape {list(spec.shape)}, but the draft head has {rows:,} rows."
        )
    with FileReader(spec.file) as file:
        stored = np.frombuffer(file.read(spec.offset, spec.nbytes), _DTYPES[spec.format]).astype(np.int64)
    return decode_draft_ids(
        stored, vocabulary, f"{spec.file_name} in {spec.file.name}", offsets_allowed=offsets_allowed
    )


def decode_draft_ids(stored: IntArray, vocabulary: int, where: str, *, offsets_allowed: bool) -> IntArray:
    """The token ids that stored values [n] mean; see `read_draft_ids`."""
    repeats = len(np.unique(stored)) < len(stored)
    offsets = offsets_allowed and repeats and bool((stored[1:] >= stored[:-1]).all()) and stored[0] >= 0
    if offsets and stored[-1] < vocabulary:
        ids = stored + np.arange(len(stored))
        if ids[-1] < vocabulary:  # they rise strictly, so none occurs twice
            return ids
    outside = np.flatnonzero((stored < 0) | (stored >= vocabulary))
    if len(outside):
        row = int(outside[0])
        raise SidecarError(
            f"{where} is damaged: row {row} names token {stored[row]}, outside the vocabulary of {vocabulary:,}."
        )
    if repeats:
        _, first, inverse = np.unique(stored, return_index=True, return_inverse=True)
        row = int(np.flatnonzero(first[inverse] != np.arange(len(stored)))[0])
        other = int(first[inverse[row]])
        raise SidecarError(f"{where} is damaged: rows {other} and {row} both name token {stored[row]}.")
    return stored
