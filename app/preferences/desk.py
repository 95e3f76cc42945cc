"""Brings the preferences into effect: what changes is remembered, and every load follows it."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.jobs import LoadJob, LoadOutcome
from app.language import FOLDER, Languages, tr
from app.memory import Memory
from app.settings import LoadChoices
from app.style import Stylist
from app.worker import EngineHandle
from engine import LoadOptions

if TYPE_CHECKING:
    from app.preferences.dialog import PreferencesDialog
    from app.preferences.places import Place
    from app.theme import Theme
    from engine import ModelInfo


class PreferencesDesk(QObject):
    """Makes the dialog when it is first entered."""

    theme_wanted = Signal(str)
    open_requested = Signal(object, object, object)  # checkpoint, sidecar or None, vision tower or None

    def __init__(self, window: QWidget, memory: Memory, stylist: Stylist, data: Path) -> None:
        """`data`: the folder of conversations, runs and downloads."""
        super().__init__(window)
        self._window = window
        self._memory = memory
        self._stylist = stylist
        self._data = data
        self._opened: tuple[ModelInfo, LoadChoices] | None = None
        self.dialog: PreferencesDialog | None = None
        stylist.set_font_size(memory.settings.font_size)
        stylist.changed.connect(self._on_theme)

    def attend(self, engine: EngineHandle) -> None:
        """Have every load of this engine follow the preferences, on top of what others want."""
        wanted = engine.options_for

        def options(path: Path) -> LoadOptions:
            return self._memory.settings.load.applied(wanted(path))

        engine.options_for = options
        engine.load_ended.connect(self._on_load_ended)

    def show(self) -> PreferencesDialog:
        """Open the preferences as they are now."""
        if self.dialog is None:
            from app.preferences.dialog import PreferencesDialog

            self.dialog = PreferencesDialog(self._window)
            self.dialog.theme_changed.connect(self.theme_wanted)
            self.dialog.font_changed.connect(self._on_font)
            self.dialog.language_changed.connect(self._on_language)
            self.dialog.load_changed.connect(self._on_load)
            self.dialog.reload_requested.connect(self._reload)
            self.dialog.downloads_changed.connect(self._on_downloads)
        settings = self._memory.settings
        self.dialog.show_values(self._stylist.mode, settings.font_size, settings.load)
        self.dialog.show_languages(Languages(self._memory.folder / FOLDER), settings.language)
        self._show_state()
        return self.dialog

    def places(self) -> list[Place]:
        """Where things lie."""
        from app.preferences.places import Place

        settings = self._memory.settings
        downloads = Path(settings.download_folder) if settings.download_folder else self._data / "models"
        found = [
            Place(tr("Conversations and runs"), tr("conversations and runs"), self._data),
            Place(tr("Downloaded models"), tr("downloaded models"), downloads, changeable=True),
            Place(tr("Settings"), tr("settings"), self._memory.folder),
        ]
        if (log := log_folder()) is not None:
            found.append(Place(tr("Log"), tr("log"), log))
        if compiled := os.environ.get("NUMBA_CACHE_DIR"):
            name, within = tr("Compiled kernels (may be deleted)"), tr("compiled kernels (may be deleted)")
            found.append(Place(name, within, Path(compiled)))
        return found

    def _show_state(self) -> None:
        if self.dialog is not None:
            self.dialog.places.show_places(self.places())
            self.dialog.show_reload(self._opened is not None and self._opened[1] != self._memory.settings.load)

    @Slot(object, object)
    def _on_load_ended(self, job: LoadJob, outcome: LoadOutcome) -> None:
        if outcome.info is not None:
            used = job.options
            choices = LoadChoices(used.threads, used.context, used.precision, used.kv_cache)
            self._opened = outcome.info, choices
            self._show_state()

    @Slot()
    def _reload(self) -> None:
        """Open the model in use again, with what is set now."""
        if self._opened is not None:
            info = self._opened[0]
            companions = (Path(path) if path else None for path in (info.sidecar, info.mmproj))
            self.open_requested.emit(Path(info.path), *companions)

    @Slot(object)
    def _on_theme(self, _: Theme) -> None:
        """It may have been chosen in the menu."""
        if self.dialog is not None:
            self.dialog.show_theme(self._stylist.mode)

    @Slot(float)
    def _on_font(self, points: float) -> None:
        self._memory.change(font_size=points)
        self._stylist.set_font_size(points)

    @Slot(str)
    def _on_language(self, code: str) -> None:
        self._memory.change(language=code)

    @Slot(object)
    def _on_load(self, choices: LoadChoices) -> None:
        self._memory.change(load=choices)
        self._show_state()

    @Slot(object)
    def _on_downloads(self, folder: Path | None) -> None:
        self._memory.change(download_folder=str(folder) if folder is not None else "")
        self._show_state()


def log_folder() -> Path | None:
    """Where the log is written; None if it is kept in memory only."""
    files = (h for h in logging.getLogger().handlers if isinstance(h, RotatingFileHandler))
    return next((Path(handler.baseFilename).parent for handler in files), None)
