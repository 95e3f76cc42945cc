"""Streams matrices from files in other formats and orders, some rows at a time, on all cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.errors import CheckpointError
from engine.files.tensor_spec import TensorSpec
from engine.kernels.cpu import physical_cores
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from engine.quantise.encode import encode_rows
from engine.weights.file_layer import DiskFiles, OpenFile, read_exactly

ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

_CHUNK = 1 << 20  # values that one thread has in hand
_SCALE_ROWS = 128  # rows that share the scales of an FP8 matrix


@dataclass(frozen=True, slots=True)
class Slab:
    """Rows of a stored matrix [rows, columns], in the order in which they are wanted."""

    spec: TensorSpec
    rows: IntArray
    scale: FloatArray | None = None
    """FP8: its block scales."""
    columns: IntArray | None = None
    """The order of columns, where it changes."""

    @property
    def width(self) -> int:
        return self.spec.shape[-1]


class SourceFiles(AbstractContextManager["SourceFiles"]):
    """The files that are read, opened once each; any thread may read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        layer = DiskFiles()
        self._files: dict[Path, OpenFile] = {}
        try:
            for path in dict.fromkeys(paths):
                self._files[path] = layer.open(path, direct=False)
        except OSError as error:
            self._close()
            raise CheckpointError(f"{path.name} cannot be opened: {error.strerror}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for file in self._files.values():
            file.close()

    def read(self, spec: TensorSpec, begin: int, end: int) -> ByteArray:
        """Rows begin … end − 1 of a matrix as bytes [n, row bytes]."""
        size = row_bytes(spec.format, spec.shape[-1])
        raw = np.empty((end - begin) * size, np.uint8)
        read_exactly(self._files[spec.file], spec.file, spec.offset + begin * size, raw.data, raw.nbytes)
        return raw.reshape(end - begin, size)


def encoded(slabs: Iterable[Slab], format_name: str, files: SourceFiles, cancel: CancelToken) -> Iterator[ByteArray]:
    """The rows of all slabs one after the other, in `format_name`: bytes [n, row bytes] at a time.

    Raises:
        CheckpointError: a weight is not finite, or too large for the format.
        ReadError, Cancelled.
    """
    workers = physical_cores()
    waiting: deque[Future[ByteArray]] = deque()
    with ThreadPoolExecutor(workers, "encoder") as pool:
        try:
            for slab in slabs:
                step = max(1, _CHUNK // slab.width)
                for begin in range(0, len(slab.rows), step):
                    cancel.check()
                    waiting.append(pool.submit(_encode, slab, slab.rows[begin : begin + step], format_name, files))
                    if len(waiting) > workers + 1:
                        yield waiting.popleft().result()
            while waiting:
                cancel.check()
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _encode(slab: Slab, rows: IntArray, format_name: str, files: SourceFiles) -> ByteArray:
    same = slab.spec.format == format_name
    if same and (slab.columns is None or _moves_blocks(slab.columns, format_name)):
        raw = np.concatenate([files.read(slab.spec, *run) for run in _runs(rows)])
        return raw if slab.columns is None else _move_blocks(raw, slab.columns, format_name)
    values = np.concatenate([_decode(slab, *run, files) for run in _runs(rows)])
    if slab.columns is not None:
        values = values[:, slab.columns]
    limit = np.finfo(np.float16 if format_name not in ("F32", "BF16") else np.float32).max
    if not np.abs(values).max(initial=0) <= limit:
        raise CheckpointError(
            f"{slab.spec.where} holds a number that is not finite, or too large for {format_name}; get the file again"
            " or choose BF16."
        )
    return encode_rows(values, format_name)


def _runs(rows: IntArray) -> Iterator[tuple[int, int]]:
    """Stretches of neighbouring rows, as (begin, end)."""
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    for part in np.split(rows, cuts):
        yield int(part[0]), int(part[-1]) + 1


def _decode(slab: Slab, begin: int, end: int, files: SourceFiles) -> FloatArray:
    """Rows begin … end − 1 as float32."""
    spec, scale, first = slab.spec, slab.scale, begin
    if scale is not None:
        first = begin // _SCALE_ROWS * _SCALE_ROWS
        scale = np.ascontiguousarray(scale[first // _SCALE_ROWS : -(-end // _SCALE_ROWS)])
    raw = files.read(spec, first, end)
    matrix = Matrix(spec.format, end - first, slab.width, raw.reshape(-1), scale)
    out = np.empty((end - begin, slab.width), np.float32)
    dequantise_rows(matrix, np.arange(begin - first, end - first), out)
    return out


def _moves_blocks(columns: IntArray, format_name: str) -> bool:
    """Does the order keep the columns of each block together, so that bytes can move undecoded?"""
    size = FORMATS[format_name].block_elements
    return len(columns) % size == 0 and bool(
        (columns.reshape(-1, size) == columns[::size, None] // size * size + np.arange(size)).all()
    )


def _move_blocks(raw: ByteArray, columns: IntArray, format_name: str) -> ByteArray:
    layout = FORMATS[format_name]
    blocks = raw.reshape(len(raw), -1, layout.block_bytes)
    return blocks[:, columns[:: layout.block_elements] // layout.block_elements].reshape(raw.shape)
