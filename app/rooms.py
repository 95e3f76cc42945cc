"""The rooms beside the chat that open in windows of their own, and the actions by which they are entered.

What a room is made of is imported when it is entered: the start does not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QMainWindow

from app.history.desk import HistoryDesk
from app.jobs import LoadJob, LoadOutcome
from app.library.shelf import Shelf
from app.memory import Memory
from app.preferences.desk import PreferencesDesk
from app.style import Stylist
from app.theme import Theme
from app.worker import EngineHandle

if TYPE_CHECKING:
    from app.help.about_dialog import AboutDialog
    from app.help.doctor_dialog import DoctorDialog
    from app.help.log_dialog import LogDialog
    from app.help.palette import Palette
    from app.help.tour import Hint, Tour
    from app.preferences.dialog import PreferencesDialog

LOG = logging.getLogger("draftscope")


class Rooms(QObject):
    """Makes each room when it is first entered."""

    open_requested = Signal(object, object, object)  # checkpoint, sidecar or None, vision tower or None
    theme_wanted = Signal(str)

    def __init__(
        self, window: QMainWindow, memory: Memory, stylist: Stylist, demo: Callable[[], Path], data: Path
    ) -> None:
        """`data`: the folder of conversations, runs and downloads."""
        super().__init__(window)
        self._window = window
        self._memory = memory
        self._stylist = stylist
        self.shelf = Shelf(window, memory, demo, data / "models")
        self.shelf.open_requested.connect(self.open_requested)
        self.actions: Mapping[str, QAction] = {}
        self._history: HistoryDesk | None = None
        self.hints: Sequence[Hint] = ()
        self.tour: Tour | None = None
        self.log: LogDialog | None = None
        self._preferences = PreferencesDesk(window, memory, stylist, data)
        self._preferences.theme_wanted.connect(self.theme_wanted)
        self._preferences.open_requested.connect(self.open_requested)
        self.palette: Palette | None = None
        self.doctor: DoctorDialog | None = None
        self.about: AboutDialog | None = None
        stylist.changed.connect(self._on_theme)

    def slots(self) -> Mapping[str, Callable[[], object]]:
        """What the actions of these rooms do."""
        return {
            "library": lambda: self.shelf.show(self._stylist.theme),
            "download": lambda: self.shelf.show_download(self._stylist.theme),
            "palette": self.show_palette,
            "preferences": self.show_preferences,
            "log": self.show_log,
            "doctor": self.show_doctor,
            "tour": self.show_tour,
            "about": self.show_about,
            "updates": self.check_for_updates,
        }

    def attend(self, engine: EngineHandle, actions: Mapping[str, QAction], history: HistoryDesk) -> None:
        """Offer these actions and conversations; have every load of this engine follow the preferences, on top of what
        others want."""
        self.actions = actions
        self._history = history
        self._preferences.attend(engine)
        engine.load_ended.connect(self._note_load)
        engine.fault.connect(LOG.error)

    @Slot()
    def show_palette(self) -> None:
        """Offer everything that can be done now."""
        from app.help.commands import action_commands, chat_commands, recent_commands
        from app.help.palette import Palette

        commands = action_commands(self.actions)
        recent = self._memory.settings.recent
        commands += recent_commands(recent, lambda path, sidecar: self.open_requested.emit(path, sidecar, None))
        if self._history is not None:
            commands += chat_commands(self._history.chats.rows(), self._history.open)
        self.palette = Palette(commands, self._stylist.theme, self._window)
        self.palette.open()
        self.palette.field.setFocus()

    @Slot()
    def show_preferences(self) -> None:
        _to_front(self._preferences.show())

    @property
    def preferences(self) -> PreferencesDialog | None:
        """The preferences, once they have been entered."""
        return self._preferences.dialog

    @Slot()
    def show_log(self) -> None:
        if self.log is None:
            from app.help.log_dialog import LogDialog

            self.log = LogDialog(self._window)
        _to_front(self.log)

    @Slot()
    def show_doctor(self) -> None:
        """Look at this computer afresh."""
        from app.help.doctor_dialog import DoctorDialog
        from engine import diagnose  # with it come packages that nothing else needs

        self.doctor = DoctorDialog(diagnose(), self._window)
        self.doctor.open()

    @Slot()
    def show_about(self) -> None:
        if self.about is None:
            from app.help.about_dialog import AboutDialog

            self.about = AboutDialog(self._window)
        _to_front(self.about)

    @Slot()
    def check_for_updates(self) -> None:
        """Ask for a newer version, and show what came of it."""
        self.show_about()
        if self.about is not None:
            self.about.ask()

    @Slot()
    def show_tour(self) -> None:
        """Step through the hints from the first."""
        if self.tour is None and self.hints:
            from app.help.tour import Tour

            self.tour = Tour(self.hints, self._window)
            self.tour.ended.connect(self._on_toured)

    @Slot()
    def show_first_tour(self) -> None:
        """The same, unless it has been seen or skipped once."""
        if not self._memory.settings.toured:
            self.show_tour()

    @Slot()
    def _on_toured(self) -> None:
        self.tour = None
        self._memory.change(toured=True)

    def close(self) -> None:
        """End what the rooms have running."""
        self.shelf.close()

    @Slot(object, object)
    def _note_load(self, job: LoadJob, outcome: LoadOutcome) -> None:
        if outcome.info is not None:
            LOG.info("%s is loaded, with %d threads", outcome.info.name, outcome.info.threads)
        elif outcome.problem:
            LOG.warning("%s could not be loaded: %s", job.path.name, outcome.problem)

    @Slot(object)
    def _on_theme(self, theme: Theme) -> None:
        self.shelf.apply_theme(theme)


def _to_front(dialog: QDialog) -> None:
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
