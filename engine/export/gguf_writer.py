"""The bytes of a GGUF file (version 3): metadata values, the header with its table, and where each tensor goes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.files.gguf import GGML_TYPES
from engine.files.tensor_spec import stored_bytes

ALIGNMENT = 32
_U32, _F32, _BOOL, _STRING, _ARRAY = 4, 6, 7, 8, 9
_I32 = 5
_NUMBERS = {name: number for number, name in GGML_TYPES.items()}


def u32(value: int) -> bytes:
    """A metadata value: type and bytes; as all that follow."""
    return struct.pack("<II", _U32, value)


def i32(value: int) -> bytes:
    return struct.pack("<Ii", _I32, value)


def f32(value: float) -> bytes:
    return struct.pack("<If", _F32, value)


def flag(value: bool) -> bytes:
    return struct.pack("<I?", _BOOL, value)


def text(value: str) -> bytes:
    return struct.pack("<I", _STRING) + string(value)


def texts(values: Sequence[str]) -> bytes:
    return struct.pack("<IIQ", _ARRAY, _STRING, len(values)) + b"".join(map(string, values))


def i32s(values: Sequence[int]) -> bytes:
    return struct.pack("<IIQ", _ARRAY, _I32, len(values)) + np.asarray(values, "<i4").tobytes()


def flags(values: Sequence[bool]) -> bytes:
    return struct.pack("<IIQ", _ARRAY, _BOOL, len(values)) + np.asarray(values, bool).tobytes()


def string(value: str) -> bytes:
    """Length and UTF-8, as keys and names are written too."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of the table."""

    name: str
    format: str
    shape: tuple[int, ...]
    """Rows first."""

    @property
    def nbytes(self) -> int:
        return stored_bytes(self.format, self.shape)


def header(metadata: Mapping[str, bytes], entries: Sequence[Entry]) -> bytes:
    """All that stands before the data, which begins at a multiple of `ALIGNMENT`; tensors follow in this order, each
    padded by `padding`."""
    out = [b"GGUF", struct.pack("<IQQ", 3, len(entries), len(metadata))]
    out += [string(key) + value for key, value in metadata.items()]
    offset = 0
    for entry in entries:
        out.append(string(entry.name) + struct.pack("<I", len(entry.shape)))
        out.append(struct.pack(f"<{len(entry.shape)}Q", *reversed(entry.shape)))
        out.append(struct.pack("<IQ", _NUMBERS[entry.format], offset))
        offset += entry.nbytes + padding(entry.nbytes)
    whole = b"".join(out)
    return whole + b"\0" * padding(len(whole))


def padding(nbytes: int) -> int:
    """Bytes up to the next multiple of `ALIGNMENT`."""
    return -nbytes % ALIGNMENT


def file_bytes(head: bytes, entries: Sequence[Entry]) -> int:
    """Bytes of the whole file."""
    return len(head) + sum(entry.nbytes + padding(entry.nbytes) for entry in entries)
