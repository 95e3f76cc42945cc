"""The library without widgets: which folders are watched, what was found in them, read by a thread of its own.

Headers are read one file after another; each report comes to the window as soon as it is there. A file that has not
changed since it was read is not read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal, Slot

from app.courier import Courier
from app.library.entries import Entry, entries, pairs
from app.library.scan import Stamp, around, candidates, stamp

if TYPE_CHECKING:
    from engine import Report

News = tuple[Any, ...]
"""What takes it in, and what it is."""

SETTLE_MS = 1500
"""Files that are being copied change often; a folder is read again when it has been quiet for this long."""
PATIENCE_S = 3.0


class Catalogue(QObject):
    """What the library shows. `changed` tells that the lines or the progress are others."""

    changed = Signal()

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
        self._courier = Courier(self)
        self._courier.brought.connect(self._on_news)

    def show(self, folders: Iterable[Path], files: Iterable[Path], forgotten: Iterable[str]) -> None:
        """Watch these folders, tell of these single files too, leave out the forgotten paths."""
        self.folders, self._files, self._forgotten = tuple(folders), tuple(files), frozenset(forgotten)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Read everything that has changed; a reading under way is given up for it."""
        self._generation += 1
        self.reading, self.done, self.total = True, 0, 0
        self._courier.rest()
        self._courier.expect()
        work = self._generation, self.folders, self._files, self._courier.box.put
        self._thread = threading.Thread(target=self._scan, args=work, name="library", daemon=True)
        self._thread.start()
        self.changed.emit()

    def close(self) -> None:
        """Stop reading."""
        self._generation += 1
        self._settle.stop()
        self._courier.rest()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _scan(
        self, generation: int, folders: tuple[Path, ...], files: tuple[Path, ...], put: Callable[[News], None]
    ) -> None:
        """Read what is in the folders and the single files. Runs in a thread of its own."""

        def stale() -> bool:
            return self._generation != generation

        with self._one_at_a_time:
            paths = dict.fromkeys(near for file in files for near in around(file))
            for folder in folders:
                paths |= dict.fromkeys(candidates(folder, stale))
            put((self._on_listed, tuple(paths)))
            reports: list[Report] = []
            for path in paths:
                if stale():
                    return
                reports.append(self._report(path))
                put((self._on_read, reports[-1]))
            for model, other in pairs(reports):
                if stale():
                    return
                put((self._on_judged, model.path, other.path, _companion_problem(model.path, other)))
            put((self._on_ended,))

    def _report(self, path: Path) -> Report:
        mark = stamp(path)
        if path not in self._known or self._known[path][0] != mark:
            self._known[path] = mark, self._describe(path)
        return self._known[path][1]

    @Slot(str)
    def _on_directory(self, _folder: str) -> None:
        self._settle.start()

    @Slot(object)
    def _on_news(self, news: News) -> None:
        """Something of the reading under way: what came of earlier ones was thrown away with their box."""
        take, *what = news
        take(*what)
        self._tell()

    def _on_listed(self, paths: tuple[Path, ...]) -> None:
        self.total = len(paths)
        there = {str(path) for path in paths}
        self._reports = {path: report for path, report in self._reports.items() if path in there}
        if old := self._watcher.directories():
            self._watcher.removePaths(old)
        homes = {str(path if path.is_dir() else path.parent) for path in paths}
        if watched := [p for p in {*homes, *map(str, self.folders)} if Path(p).is_dir()]:
            self._watcher.addPaths(watched)

    def _on_read(self, report: Report) -> None:
        self.done += 1
        self._reports[report.path] = report

    def _on_judged(self, model: str, other: str, problem: str) -> None:
        self._problems[model, other] = problem

    def _on_ended(self) -> None:
        self.reading = False
        self._courier.rest()

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
