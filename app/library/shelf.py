"""Brings the library's parts together: the catalogue, its dialog, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.icons import ink_icons
from app.library.catalogue import Catalogue
from app.library.dialog import LibraryDialog
from app.memory import Memory
from app.theme import Theme


class Shelf(QObject):
    """The library of one window; nothing is read before it is opened for the first time."""

    open_requested = Signal(object, object)  # Path, Path | None

    def __init__(self, window: QWidget, memory: Memory, demo: Callable[[], Path]) -> None:
        super().__init__(window)
        self._window = window
        self._memory = memory
        self._demo = demo
        self.catalogue = Catalogue(self)
        self.dialog: LibraryDialog | None = None

    def show(self, theme: Theme) -> None:
        """Open the library, or bring it to the front."""
        if self.dialog is None:
            self.dialog = LibraryDialog(self.catalogue, theme, self._window)
            self.dialog.open_requested.connect(self.open_requested)
            self.dialog.folders_wanted.connect(self._watch)
            self.dialog.forget_requested.connect(self._forget)
            ink_icons(self.dialog, theme)
        self.dialog.apply_theme(theme)
        self._read()
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
        self.dialog.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def apply_theme(self, theme: Theme) -> None:
        if self.dialog is not None:
            self.dialog.apply_theme(theme)

    def close(self) -> None:
        """End the library's thread."""
        self.catalogue.close()

    def _read(self) -> None:
        settings = self._memory.settings
        recent = [Path(model.path) for model in settings.recent]
        files = dict.fromkeys([*(path for path in recent if path.exists()), self._demo()])
        self.catalogue.show(map(Path, settings.folders), files, settings.forgotten)

    @Slot(object)
    def _watch(self, folders: tuple[Path, ...]) -> None:
        """Watch these; a folder that is new brings back what was forgotten in it."""
        settings = self._memory.settings
        fresh = [folder for folder in folders if str(folder) not in settings.folders]
        kept = tuple(p for p in settings.forgotten if not any(Path(p).is_relative_to(folder) for folder in fresh))
        self._memory.change(folders=tuple(map(str, folders)), forgotten=kept)
        self._read()

    @Slot(object)
    def _forget(self, path: Path) -> None:
        """Take it off the library and off the recent ones."""
        settings = self._memory.settings
        recent = tuple(model for model in settings.recent if Path(model.path) != path)
        self._memory.change(recent=recent, forgotten=tuple(dict.fromkeys((*settings.forgotten, str(path)))))
        self._read()
