"""Files that the desktop hands to the program while it runs, as macOS does for a double click and for "Open with"."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot
from PySide6.QtGui import QFileOpenEvent


class FileOpenings(QObject):
    """Watches the application. Files that come in one go, one event each, become one signal."""

    opened = Signal(object)  # list[Path]

    def __init__(self, app: QObject, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: list[Path] = []
        self._app = app
        app.installEventFilter(self)

    def release(self) -> None:
        """Watch no longer."""
        self._app.removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the events that bring a file; leave all others alone."""
        if not isinstance(event, QFileOpenEvent) or not event.file():
            return super().eventFilter(watched, event)
        if not self._waiting:
            QTimer.singleShot(0, self, self._tell)
        self._waiting.append(Path(event.file()))
        return True

    @Slot()
    def _tell(self) -> None:
        paths, self._waiting = self._waiting, []
        self.opened.emit(paths)
