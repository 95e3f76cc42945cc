"""A kept run in one line: what ran, when, and how it went. Read from both ends of its file, not from all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from app.language import mark, tr
from engine import EngineError, Failed, Finished, Stats, TraceError, TraceHeader, record_from_json

_TAIL = 64 << 10
_DRAFTERS = {"none": mark("none"), "mtp": "MTP", "ngram": mark("n-gram"), "mtp+ngram": mark("MTP + n-gram")}
_LENGTHS = {"adaptive": mark("adaptive"), "cost-aware": mark("cost-aware")}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the list of runs shows."""

    path: Path
    model: str
    created: str
    """ISO 8601, UTC; empty if unknown."""
    drafter: str
    prompt: str
    stats: Stats
    size: int
    """Bytes of the file."""

    @property
    def when(self) -> str:
        """Date and time here."""
        return local_time(self.created)


def local_time(created: str) -> str:
    """An ISO time in UTC as the person's own, to the second."""
    try:
        return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return created


def drafter_words(settings: Mapping[str, Any], sidecar: str | None = None) -> str:
    """Who drafted and how far ahead, in few words."""
    draft = settings.get("draft")
    if not isinstance(draft, Mapping):
        return tr("unknown")
    name, tokens = draft.get("drafter", ""), draft.get("tokens", 0)
    if name == "none" or not tokens:
        return tr("none")
    drafter, length = _DRAFTERS.get(str(name)), str(draft.get("length", "fixed"))
    how = tokens if length == "fixed" else tr(_LENGTHS[length]) if length in _LENGTHS else length
    words = f"{tr(drafter) if drafter else name}, {how}"
    return f"{words} ({sidecar})" if sidecar else words


def read_summary(path: Path) -> RunSummary:
    """The summary of a trace file.

    Raises:
        TraceError: no trace, or one that cannot be read.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            first = json.loads(file.readline(1 << 24))
            last = _last_line(path, size)
    except OSError as error:
        raise TraceError(tr("The run {path} cannot be read: {why}.", path=path, why=error.strerror)) from None
    except ValueError:
        raise TraceError(tr("{name} is no run: its first line is not a header.", name=path.name)) from None
    if not isinstance(first, dict) or first.get("event") != "header":
        raise TraceError(tr("{name} is no run: its first line is not a header.", name=path.name))
    settings = first.get("settings")
    return RunSummary(
        path=path,
        model=str(first.get("model", "")),
        created=str(first.get("created", "")),
        drafter=drafter_words(settings if isinstance(settings, dict) else {}, first.get("sidecar")),
        prompt=str(first.get("prompt", "")),
        stats=_stats(last),
        size=size,
    )


def heading(header: TraceHeader) -> str:
    """A run's name: model, drafter, date."""
    return " · ".join((header.model, drafter_words(header.settings, header.sidecar), local_time(header.created)))


def _stats(line: bytes) -> Stats:
    """The numbers of a run's last line; none if it was cut off before its end."""
    try:
        record = record_from_json(json.loads(line))
    except (ValueError, EngineError, AttributeError):
        return Stats()
    return record.stats if isinstance(record, Finished | Failed) else Stats()


def _last_line(path: Path, size: int) -> bytes:
    """The last line of a file, however long."""
    with path.open("rb") as file:
        data, at = b"", size
        while at > 0 and b"\n" not in data.rstrip(b"\n"):
            step = min(at, max(_TAIL, len(data)))
            at -= step
            file.seek(at)
            data = file.read(step) + data
        return data.rstrip(b"\n").rpartition(b"\n")[2]
