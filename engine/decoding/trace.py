"""Saved traces: one JSON object a line, a header first, then the records of one reply in order.

A trace is what the window replays without a model, what two runs are compared by, and what `--trace` writes. It is
written beside its final name and flushed with every record: a crash loses at most the record in progress.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from engine.decoding.records import Failed, Finished, Record, Round, record_from_json, to_json
from engine.errors import TraceError

FORMAT = 1
"""Version of the file format. It grows when an older program would misread a new file."""
MAX_LINE = 64 << 20
"""Characters of a plausible line: the longest one holds a whole reply."""
_ODD_NAMES = "surrogatepass"
"""A checkpoint's path need not be UTF-8 on every system; Python keeps what is not as halves of characters."""


@dataclass(frozen=True, slots=True)
class TracedFile:
    """A model file, told apart from others of its name."""

    name: str
    size: int
    """Bytes."""
    digest: str
    """`sha256:…` of the whole file, or `sha256-sampled:…` of parts of a large one (see engine.run_identity)."""


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What was run, on what, with which settings: enough to run it again."""

    draftscope: str
    """Version of the program."""
    created: str
    """ISO 8601, UTC."""
    model: str
    files: tuple[TracedFile, ...] = ()
    """Of checkpoint and sidecar."""
    sidecar: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The options of the reply and of loading, as JSON."""
    seed: int = 0
    machine: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    prompt_tokens: tuple[int, ...] = ()
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        """The header's line."""
        return {"event": "header", **dataclasses.asdict(self)}


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read."""

    header: TraceHeader
    records: tuple[Record, ...]
    cut: bool = False
    """Did the file end inside a line, as after a crash? That line is left out."""

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(record for record in self.records if isinstance(record, Round))

    @property
    def ending(self) -> Finished | Failed | None:
        """How the reply ended; None if the trace stops before."""
        return next((r for r in reversed(self.records) if isinstance(r, Finished | Failed)), None)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The reply's tokens."""
        ending = self.ending
        return tuple(c.token for r in self.rounds for c in r.committed) if ending is None else ending.tokens


class TraceWriter:
    """Writes a trace. Use as a context manager, or call `finish`: only then does the file get its name."""

    def __init__(self, path: str | Path, header: TraceHeader) -> None:
        """Raises TraceError if the file cannot be made."""
        self.path = Path(path)
        self._part = self.path.with_name(self.path.name + ".part")
        try:
            self._file: IO[str] = self._part.open("w", encoding="utf-8", errors=_ODD_NAMES, newline="\n")
        except OSError as error:
            raise TraceError(f"The trace {self.path} cannot be written: {error.strerror}.") from None
        self._write(header.to_json())

    def write(self, record: Record) -> None:
        """Append a record. Raises TraceError if the disk refuses."""
        self._write(to_json(record))

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise TraceError(f"The trace {self.path} cannot be written: {error.strerror}.") from None

    def finish(self) -> None:
        """Give the file its name. What stood there under this name is replaced. May be called again."""
        if self._file.closed:
            return
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
        except OSError as error:
            raise TraceError(f"The trace {self.path} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


def read_trace(path: str | Path) -> Trace:
    """Read a saved trace, also one that a crash cut off inside its last line.

    Raises:
        TraceError: no trace, of a later format, or with a line that is none (the message gives its number).
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8", errors=_ODD_NAMES) as file:
            lines = _lines(file, path.name)
            _, first, _ = next(lines, (1, "", False))
            header = _header(first, path.name)
            records, cut = _records(lines, path.name)
    except OSError as error:
        raise TraceError(f"The trace {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path.name} is no trace: it is not UTF-8 text.") from None
    return Trace(header, records, cut)


def _lines(file: IO[str], name: str) -> Iterator[tuple[int, str, bool]]:
    """(number, text, has its end) of each line that is not empty."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        ended = line.endswith("\n")
        if not ended and len(line) >= MAX_LINE:
            raise TraceError(f"{name}, line {number}: longer than a trace's lines can be.")
        if line.strip():
            yield number, line, ended


def _header(line: str, name: str) -> TraceHeader:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("event") != "header":
        raise TraceError(f"{name} is no trace: its first line is not a header.")
    version = data.get("format")
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise TraceError(f"{name} has the trace format {version!r}, but this program reads up to {FORMAT}: update it.")
    known = {f.name for f in dataclasses.fields(TraceHeader)}
    given = {key: value for key, value in data.items() if key in known}
    try:
        given["files"] = tuple(TracedFile(f["name"], int(f["size"]), f["digest"]) for f in data.get("files", ()))
        given["prompt_tokens"] = tuple(map(int, data.get("prompt_tokens", ())))
        return TraceHeader(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{name}, line 1: the header is incomplete ({error}).") from None


def _records(lines: Iterator[tuple[int, str, bool]], name: str) -> tuple[tuple[Record, ...], bool]:
    records: list[Record] = []
    for number, line, ended in lines:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            if not ended:
                return tuple(records), True
            raise TraceError(f"{name}, line {number}: not JSON.") from None
        if not isinstance(data, dict):
            raise TraceError(f"{name}, line {number}: not a record.")
        try:
            records.append(record_from_json(data))
        except TraceError as error:
            raise TraceError(f"{name}, line {number}: {error}") from None
    return tuple(records), False
