"""The kept runs: a folder of trace files, bounded by number and bytes. The oldest go first."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from app.language import tr
from app.runs.summary import RunSummary, read_summary
from engine import Record, TraceError, TraceHeader, TraceWriter

SUFFIX = ".jsonl"
MOST_RUNS = 200
MOST_BYTES = 256 << 20


class RunStore:
    """Writes, lists and deletes runs. `write` may be called in another thread than the rest."""

    def __init__(self, folder: Path, most: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most = most
        self._most_bytes = most_bytes
        self._known: dict[tuple[Path, int, int], RunSummary] = {}

    def write(self, header: TraceHeader, records: Iterable[Record]) -> Path:
        """Keep a run, and let the oldest go if there are too many now.

        Raises:
            TraceError: the file cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(
                tr("Runs cannot be kept in {folder}: {why}.", folder=self.folder, why=error.strerror)
            ) from None
        path = self._free_path(header)
        with TraceWriter(path, header) as trace:
            for record in records:
                trace.write(record)
        self.prune(keep=path)
        return path

    def summaries(self) -> list[RunSummary]:
        """What is there, newest first; files that are no runs are passed over."""
        found: dict[tuple[Path, int, int], RunSummary] = {}
        for path, size, changed in self._files():
            key = (path, size, changed)
            with contextlib.suppress(TraceError):
                found[key] = self._known.get(key) or read_summary(path)
        self._known = found
        return sorted(found.values(), key=lambda run: (run.created, run.path.name), reverse=True)

    def delete(self, paths: Iterable[Path]) -> None:
        """Delete runs of this folder."""
        for path in paths:
            if path.parent == self.folder:
                path.unlink(missing_ok=True)

    def prune(self, keep: Path | None = None) -> None:
        """Delete the oldest runs beyond the bounds, never `keep`."""
        count = total = 0
        for path, size, _ in sorted(self._files(), key=lambda file: file[2], reverse=True):
            count, total = count + 1, total + size
            if path != keep and (count > self._most or total > self._most_bytes):
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, int, int]]:
        """(path, bytes, time of change) of every run."""
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # deleted meanwhile
                facts = path.stat()
                found.append((path, facts.st_size, facts.st_mtime_ns))
        return found

    def _free_path(self, header: TraceHeader) -> Path:
        stem = re.sub(r"[^0-9A-Za-z]+", "-", f"{header.created[:19]}-{header.model}").strip("-")[:80] or "run"
        names = (self.folder / f"{stem}{f'-{n}' if n else ''}{SUFFIX}" for n in range(10**6))
        return next(path for path in names if not path.exists())
