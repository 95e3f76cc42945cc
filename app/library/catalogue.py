"""The library without widgets: which folders are watched, what was found in them, read by a thread of its own.

Headers are read one file after another; each report comes to the window as soon as it is there. A file that has not
changed since it was read is not read again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileSystemWatcher, QObject, Qt, QTimer, Signal, Slot

from app.library.entries import Entry, entries, pairs
from app.library.scan import Stamp, around, candidates, stamp

if TYPE_CHECKING:
    from engine import Report

SETTLE_MS = 1500
"""Files that are being copied change often; a folder is read again when it has been quiet for this long."""
PATIENCE_S = 3.0


class Catalogue(QObject):
    """What the library shows. `changed` tells that the lines or the progress are others."""

    changed = Signal()
    _listed = Signal(int, object)  # generation, every candidate
    _read = Signal(int, object)  # generation, Report
    _judged = Signal(int, str, str, str)  # generation, checkpoint, companion, problem
    _ended = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folders: tuple[Path, ...] = ()
        self.entries: list[Entry] = []
        self.reading = False
        self.done = 0
        self.total = 0
        self._files: tuple[Path, ...] = ()
        self._forgotten: frozenset[str] = frozenset()
        self._reports: dict[str, Report] = {}
        self._problems: dict[tuple[str, str], str] = {}
        self._generation = 0
        self._one_at_a_time = threading.Lock()
        self._known: dict[Path, tuple[Stamp, Report]] = {}
        self._describe = _describe
        self._thread: threading.Thread | None = None
        self._watcher = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self.refresh)
        self._watcher.directoryChanged.connect(self._on_directory)
        queued = Qt.ConnectionType.QueuedConnection  # they are sent by the reading thread
        self._listed.connect(self._on_listed, queued)
        self._read.connect(self._on_read, queued)
        self._judged.connect(self._on_judged, queued)
        self._ended.connect(self._on_ended, queued)

    def show(self, folders: Iterable[Path], files: Iterable[Path], forgotten: Iterable[str]) -> None:
        """Watch these folders, tell of these single files too, leave out the forgotten paths."""
        self.folders, self._files, self._forgotten = tuple(folders), tuple(files), frozenset(forgotten)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Read everything that has changed; a reading under way is given up for it."""
        self._generation += 1
        self.reading, self.done, self.total = True, 0, 0
        work = self._generation, self.folders, self._files
        self._thread = threading.Thread(target=self._scan, args=work, name="library", daemon=True)
        self._thread.start()
        self.changed.emit()

    def close(self) -> None:
        """Stop reading."""
        self._generation += 1
        self._settle.stop()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _scan(self, generation: int, folders: tuple[Path, ...], files: tuple[Path, ...]) -> None:
        """Read what is in the folders and the single files. Runs in a thread of its own."""

        def stale() -> bool:
            return self._generation != generation

        with self._one_at_a_time:
            paths = dict.fromkeys(near for file in files for near in around(file))
            for folder in folders:
                paths |= dict.fromkeys(candidates(folder, stale))
            self._listed.emit(generation, tuple(paths))
            reports: list[Report] = []
            for path in paths:
                if stale():
                    return
                reports.append(self._report(path))
                self._read.emit(generation, reports[-1])
            for model, other in pairs(reports):
                if stale():
                    return
                self._judged.emit(generation, model.path, other.path, _companion_problem(model.path, other))
            self._ended.emit(generation)

    def _report(self, path: Path) -> Report:
        mark = stamp(path)
        if path not in self._known or self._known[path][0] != mark:
            self._known[path] = mark, self._describe(path)
        return self._known[path][1]

    @Slot(str)
    def _on_directory(self, _folder: str) -> None:
        self._settle.start()

    @Slot(int, object)
    def _on_listed(self, generation: int, paths: tuple[Path, ...]) -> None:
        if generation != self._generation:
            return
        self.total = len(paths)
        there = {str(path) for path in paths}
        self._reports = {path: report for path, report in self._reports.items() if path in there}
        if old := self._watcher.directories():
            self._watcher.removePaths(old)
        homes = {str(path if path.is_dir() else path.parent) for path in paths}
        if watched := [p for p in {*homes, *map(str, self.folders)} if Path(p).is_dir()]:
            self._watcher.addPaths(watched)
        self._tell()

    @Slot(int, object)
    def _on_read(self, generation: int, report: Report) -> None:
        if generation == self._generation:
            self.done += 1
            self._reports[report.path] = report
            self._tell()

    @Slot(int, str, str, str)
    def _on_judged(self, generation: int, model: str, other: str, problem: str) -> None:
        if generation == self._generation:
            self._problems[model, other] = problem
            self._tell()

    @Slot(int)
    def _on_ended(self, generation: int) -> None:
        if generation == self._generation:
            self.reading = False
            self._tell()

    def _tell(self) -> None:
        wanted = [report for path, report in self._reports.items() if path not in self._forgotten]
        self.entries = entries(wanted, self._problems)
        self.changed.emit()


def _describe(path: Path) -> Report:
    from engine import describe  # with it come the readers of every format, which only the reading thread needs

    return describe(path)


def _companion_problem(model: str, other: Report) -> str:
    from engine import companion_problem

    return companion_problem(model, other)
