"""Keeps the settings while the program runs, and writes them a moment after they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QMainWindow

from app.language import tr
from app.settings import Settings, SettingsFile

SAVE_DELAY_MS = 1000
LAYOUT_VERSION = 3
"""Raised when the docks change, so that an older layout is not forced on them."""


class Memory(QObject):
    """The settings of one window, with its place on the screen and the layout of its docks."""

    problem = Signal(str)
    """Why the settings could not be written; told once, until it works again."""

    def __init__(self, window: QMainWindow, file: SettingsFile) -> None:
        super().__init__(window)
        self._window = window
        self._file = file
        self.settings: Settings = file.load()
        self._failed = False
        self._saver = QTimer(self)
        self._saver.setSingleShot(True)
        self._saver.setInterval(SAVE_DELAY_MS)
        self._saver.timeout.connect(self.save)

    @property
    def folder(self) -> Path:
        """Where the settings lie."""
        return self._file.path.parent

    def change(self, **changes: Any) -> None:
        """Set fields of the settings; they are written soon."""
        self.keep(replace(self.settings, **changes))

    def keep(self, settings: Settings) -> None:
        """Take over these settings; they are written soon."""
        self.settings = settings
        self._saver.start()

    def restore_window(self) -> None:
        """Put window and docks back where they were."""
        if self.settings.geometry:
            self._window.restoreGeometry(QByteArray.fromBase64(self.settings.geometry.encode()))
        if self.settings.layout:
            self._window.restoreState(QByteArray.fromBase64(self.settings.layout.encode()), LAYOUT_VERSION)

    @Slot()
    def save(self) -> None:
        """Write everything now. What cannot be written must not keep anyone from going on, or from closing."""
        self._saver.stop()
        self.settings = replace(
            self.settings,
            geometry=bytes(self._window.saveGeometry().toBase64().data()).decode(),
            layout=bytes(self._window.saveState(LAYOUT_VERSION).toBase64().data()).decode(),
        )
        try:
            self._file.save(self.settings)
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._failed = True
                self.problem.emit(
                    tr(
                        "The settings cannot be kept in {path} ({why}): make room there, or make the folder writable. "
                        "Until then they last as long as this window.",
                        path=self._file.path,
                        why=error.strerror or error,
                    )
                )
