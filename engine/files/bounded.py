"""Reading files that are not trusted: sizes are checked before memory is asked for, faults become our errors."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from engine.errors import CheckpointError

JSON_LIMIT = 64 << 20
"""Bytes of the largest JSON file that is read: three times the tokenizer.json of a vocabulary of 248,320."""


def named_path(path: str | Path) -> Path:
    """An absolute path without `.` and `..`, so that messages can tell its name. Links stay as they are: what they
    point to may have no extension."""
    return Path(os.path.abspath(path))


class FileReader:
    """A file opened for reading, with its size; every read is counted and bounded by it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise CheckpointError(f"{path} is not a file.")
            self._file: BinaryIO = path.open("rb", buffering=0)
            self.size = self._file.seek(0, 2)
        except FileNotFoundError:
            raise CheckpointError(f"There is no file {path}.") from None
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} cannot be opened: {_reason(error)}.") from error

    def __enter__(self) -> FileReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset` on; CheckpointError if the file ends before."""
        if offset < 0 or count < 0 or offset + count > self.size:
            missing = offset + count - self.size
            raise CheckpointError(f"{self.path.name} is incomplete: {missing:,} bytes are missing; get the file again.")
        try:
            self._file.seek(offset)
            data = b""
            while len(data) < count:
                part = self._file.read(count - len(data))
                if not part:
                    raise CheckpointError(f"{self.path.name} became shorter while it was read; get the file again.")
                data = data + part if data else part
        except OSError as error:
            raise CheckpointError(f"{self.path.name} cannot be read at byte {offset:,}: {_reason(error)}.") from error
        return data


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).rstrip(".").lower()


def read_text(path: Path, limit: int) -> str:
    """The UTF-8 text of a file of at most `limit` bytes."""
    with FileReader(path) as file:
        if file.size > limit:
            raise CheckpointError(f"{path.name} has {file.size:,} bytes; more than {limit:,} is not plausible.")
        data = file.read(0, file.size)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name} is not UTF-8 text: byte {error.start:,} is invalid.") from error


def read_json_object(path: Path, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """The JSON object in a file; CheckpointError if it is anything else."""
    return parse_json_object(read_text(path, limit), path.name)


def parse_json_object(text: str | bytes, where: str) -> dict[str, Any]:
    """Strict JSON: no repeated keys, no NaN or Infinity, nesting within the interpreter's bound."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise CheckpointError(f"{where} is nested too deeply.") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{where} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{where} is not a JSON object.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated[:100]!r} stands in it twice")
    return result


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
