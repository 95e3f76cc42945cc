"""Rows of an embedding table, from memory where the table is resident, else each from disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.kernels.matrix import Matrix
from engine.weights.buffers import ByteArray, aligned_buffer
from engine.weights.ranges import BLOCK, ByteRange, lay_out, round_up
from engine.weights.reader import Priority, Reader

if TYPE_CHECKING:
    from engine.files.tensor_spec import TensorSpec

BATCH = 32
"""Rows that are read at a time: enough to keep a disk busy, few enough to need little memory."""


def scratch_bytes(spec: TensorSpec) -> int:
    """Bytes that reading rows of this table from disk may need."""
    return BATCH * (round_up(spec.nbytes // spec.shape[0]) + BLOCK)


class EmbeddingTable:
    """One table [rows, H]. `matrix` is the whole table where it is resident."""

    def __init__(self, spec: TensorSpec, reader: Reader, matrix: Matrix | None) -> None:
        self._spec = spec
        self._reader = reader
        self._matrix = matrix
        self._rows, self._cols = spec.shape
        self._row_bytes = spec.nbytes // self._rows
        self._scratch: ByteArray | None = None

    @property
    def scratch_bytes(self) -> int:
        """Bytes held for reading rows."""
        return 0 if self._scratch is None else len(self._scratch)

    def ranges(self, ids: npt.NDArray[np.int64]) -> list[ByteRange]:
        """Where the rows `ids` are on disk."""
        begin, size = self._spec.offset, self._row_bytes
        return [ByteRange(self._spec.file, begin + int(row) * size, size) for row in ids]

    def decode(self, ids: npt.NDArray[np.int64], out: npt.NDArray[np.float32], cancel: CancelToken | None) -> None:
        """Rows `ids` [T] as float32 into out [T, H].

        Raises:
            ValueError: an id outside the table.
            ReadError, Cancelled.
        """
        from engine.kernels.matmul import dequantise_rows

        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self._rows:
            raise ValueError(f"Token ids must be from 0 to {self._rows - 1}, but there are {ids.min()}…{ids.max()}.")
        if self._matrix is not None:
            dequantise_rows(self._matrix, ids, out)
            return
        for begin in range(0, len(ids), BATCH):
            some = ids[begin : begin + BATCH]
            raw = self._read(some, cancel)
            rows = Matrix(self._spec.format, len(some), self._cols, raw)
            dequantise_rows(rows, np.arange(len(some), dtype=np.int64), out[begin : begin + len(some)])

    def _read(self, ids: npt.NDArray[np.int64], cancel: CancelToken | None) -> ByteArray:
        """New raw bytes of the rows, one after the other, in the order of `ids`."""
        layout = lay_out(self.ranges(ids), gap=0)
        if self._scratch is None:
            self._scratch = aligned_buffer(scratch_bytes(self._spec))
        with self._reader.lock:
            request = self._reader.submit("the embedding", layout, self._scratch, Priority.DEMAND)
            try:
                self._reader.wait("the embedding", lambda: request.done, cancel)
            except BaseException:
                self._reader.drop(request)
                if not request.done:
                    self._scratch = None  # a read that is under way still writes into it
                raise
            if request.error is not None:
                raise request.error
        size = self._row_bytes
        return np.concatenate([self._scratch[place : place + size] for place in layout.places])
