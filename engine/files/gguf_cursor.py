"""Reads the pieces of a GGUF header one after the other, never beyond the file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from engine.errors import CheckpointError
from engine.files.bounded import FileReader

HEADER_LIMIT = 128 << 20
"""Bytes: eight times the metadata of a vocabulary of 248,320 with its merges."""
STRINGS_LIMIT = 1 << 22
CHUNK = 1 << 20
KEY_LIMIT = 1 << 16

_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    _BOOL: "<u1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}


class Strings(Sequence[str]):
    """A long array of strings, kept as the file's bytes and decoded where it is looked at."""

    def __init__(self, data: bytes, ends: npt.NDArray[np.int64]) -> None:
        """`data` as in the file: before each string 8 bytes with its length; `ends` [n] says where each ends."""
        self._data = data
        self._starts = np.concatenate([[0], ends[:-1]]) + 8
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return self._data[self._starts[index] : self._ends[index]].decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<{len(self)} strings>"


Scalar = int | float | bool | str
Value = Scalar | npt.NDArray[np.generic] | Strings | tuple[()]


class Cursor:
    """A position in the header of an open file; reads ahead in chunks, and no further than the header reaches."""

    def __init__(self, file: FileReader) -> None:
        self.file = file
        self.position = 0
        self._buffer = bytearray()

    def _have(self, end: int) -> None:
        """Read on until the buffer holds the file's first `end` bytes."""
        if end <= len(self._buffer):
            return
        name = self.file.path.name
        if end > self.file.size:
            raise CheckpointError(
                f"{name} is incomplete: its header does not end within {self.file.size:,} bytes; get it again."
            )
        if end > HEADER_LIMIT:
            raise CheckpointError(f"{name} has a header of more than {HEADER_LIMIT:,} bytes, which is not plausible.")
        more = min(max(end - len(self._buffer), CHUNK), self.file.size - len(self._buffer))
        self._buffer += self.file.read(len(self._buffer), more)

    def take(self, count: int) -> bytes:
        self._have(self.position + count)
        data = bytes(self._buffer[self.position : self.position + count])
        self.position += count
        return data

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def string(self, limit: int = KEY_LIMIT) -> str:
        """A length and as many bytes of UTF-8."""
        begin, length = self.position, self.u64()
        if length > limit:
            raise self._damaged(f"a string of {length:,} bytes at byte {begin:,}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self._damaged(f"text that is not UTF-8 at byte {begin:,}") from None

    def value(self, kind: int) -> Value:
        """A metadata value of this type number: a Python scalar, a numpy array, or Strings."""
        if kind == _STRING:
            return self.string(HEADER_LIMIT)
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise self._damaged(f"the unknown value type {kind} at byte {self.position:,}")
        item: Scalar = self._numbers(kind, 1)[0].item()
        return bool(item) if kind == _BOOL else item

    def _array(self) -> Value:
        begin, kind, count = self.position, self.u32(), self.u64()
        smallest = 8 if kind == _STRING else np.dtype(_SCALARS[kind]).itemsize if kind in _SCALARS else 0
        if not smallest:
            raise self._damaged(f"an array of type {kind} at byte {begin:,}")
        if count * smallest > self.file.size - self.position or (kind == _STRING and count > STRINGS_LIMIT):
            raise self._damaged(f"an array of {count:,} values at byte {begin:,}")
        if kind == _STRING:
            return self._strings(count)
        numbers = self._numbers(kind, count)
        return numbers.astype(bool) if kind == _BOOL else numbers

    def _numbers(self, kind: int, count: int) -> npt.NDArray[np.generic]:
        dtype = np.dtype(_SCALARS[kind])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype)

    def _strings(self, count: int) -> Strings:
        """Finds where each string ends; half a million of them are usual, so the loop does nothing else."""
        begin = end = self.position
        ends = []
        lengths = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if end + 8 > len(self._buffer):
                self._have(end + 8)
            end += 8 + lengths(self._buffer, end)[0]
            ends.append(end - begin)
        self.position = begin
        return Strings(self.take(end - begin), np.array(ends, np.int64))

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.file.path.name} is damaged: its header has {what}; get the file again.")
