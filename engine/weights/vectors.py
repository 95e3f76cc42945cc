"""Small tensors as float32, in the form that the model computes with: a file's conventions are applied here, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.errors import CheckpointError
from engine.weights.file_layer import FileLayer, OpenFile, read_exactly
from engine.weights.roles import VECTOR_ROLES, Role, role_of

if TYPE_CHECKING:
    from pathlib import Path

    from engine.files.conventions import Conventions
    from engine.files.tensor_spec import TensorSpec

FloatArray = npt.NDArray[np.float32]


def load_vectors(
    specs: Mapping[str, TensorSpec],
    conventions: Conventions,
    mtp_conventions: Conventions,
    files: FileLayer,
    cancel: CancelToken | None = None,
) -> dict[str, FloatArray]:
    """Every vector among `specs` (by plain canonical name), converted; plus `….decay_rate` for each `….A_log`.

    Raises:
        ReadError: a file cannot be read.
        CheckpointError: a vector of a type that has no float32 form.
    """
    wanted = {name: spec for name, spec in specs.items() if role_of(name) in VECTOR_ROLES | {Role.SCALE}}
    vectors: dict[str, FloatArray] = {}
    opened: dict[Path, OpenFile] = {}
    try:
        for name, spec in sorted(wanted.items(), key=lambda item: (str(item[1].file), item[1].offset)):
            if cancel is not None:
                cancel.check()
            if spec.file not in opened:
                opened[spec.file] = files.open(spec.file, direct=False)
            raw = np.empty(spec.nbytes, np.uint8)
            read_exactly(opened[spec.file], spec.file, spec.offset, raw.data, spec.nbytes)
            values = to_float32(spec, raw)
            applied = mtp_conventions if name.startswith("mtp.") else conventions
            stored = name.removesuffix("A_log") + "decay_rate" if role_of(name) is Role.DECAY else name
            vectors[stored] = _apply(role_of(name), values, spec, applied)
    finally:
        for file in opened.values():
            file.close()
    return vectors


def _apply(role: Role, values: FloatArray, spec: TensorSpec, conventions: Conventions) -> FloatArray:
    """The values as the model uses them, flat but for convolutions [channels, taps] and scales."""
    if role is Role.NORM:
        return values.reshape(-1) + np.float32(conventions.norm_offset)
    if role is Role.DECAY:
        rate = np.exp(values) if conventions.decay == "A_log" else -values
        return np.ascontiguousarray(rate.reshape(-1), dtype=np.float32)
    if role is Role.CONV:
        return np.ascontiguousarray(values.reshape(spec.shape[0], -1))
    if role is Role.SCALE:
        return values.reshape(spec.shape)
    return values.reshape(-1)


def to_float32(spec: TensorSpec, raw: npt.NDArray[np.uint8]) -> FloatArray:
    """The values of a whole tensor, from its bytes.

    Raises:
        CheckpointError: its type has no float32 form here.
    """
    if spec.format == "F32":
        return raw.view("<f4").astype(np.float32).reshape(spec.shape)
    if spec.format == "F16":
        return raw.view("<f2").astype(np.float32).reshape(spec.shape)
    if spec.format == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(spec.shape)
    return _dequantise(spec, raw)


def _dequantise(spec: TensorSpec, raw: npt.NDArray[np.uint8]) -> FloatArray:
    from engine.kernels.matmul import dequantise_rows
    from engine.kernels.matrix import Matrix

    cols = spec.shape[-1]
    rows = spec.elements // cols
    out = np.empty((rows, cols), np.float32)
    try:
        dequantise_rows(Matrix(spec.format, rows, cols, raw), np.arange(rows, dtype=np.int64), out)
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{spec.where} is of type {spec.format}, which cannot be used for a small tensor."
        ) from error
    return out.reshape(spec.shape)
