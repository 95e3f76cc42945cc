"""Shows how things stand: what may be done now, what is being done, and the figures of the reply so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.language import tr
from app.library.choice import is_there
from app.status import Tally

if TYPE_CHECKING:
    from app.main_window import MainWindow
    from engine import Record

WELCOME, ACCEPTANCE, READING = range(3)
"""The pages in the middle of the window."""


class Standing(QObject):
    """Brings the parts of one window in line with its chat."""

    def __init__(self, window: MainWindow, demo: Callable[[], Path]) -> None:
        """The window has its parts and actions already."""
        super().__init__(window)
        self._window = window
        self._demo = demo
        self._tally = Tally()
        chat = window.controller
        chat.changed.connect(self.refresh)
        chat.reply_began.connect(self.start_over)
        chat.shown.connect(self.start_over)
        chat.records.connect(self._on_records)
        chat.plots_due.connect(self.show_tally)
        window.weights.watch.looked.connect(self.show_tally)

    @Slot()
    def start_over(self) -> None:
        """Another reply, another path or another conversation."""
        self._tally = Tally()

    @Slot(object)
    def _on_records(self, records: tuple[Record, ...]) -> None:
        for record in records:
            self._tally = self._tally.add(record)

    @Slot()
    def refresh(self) -> None:
        """What may be done now."""
        window, chat = self._window, self._window.controller
        actions, reading = window.actions_by_name, window.memory.settings.reading_view
        window.model_bar.show_loading(chat.loading_path, stopping=chat.stopping)
        window.composer.show_state(
            chat.why_not_send(), running=chat.replying, stopping=chat.stopping, queued=chat.queued is not None
        )
        window.pages.setCurrentIndex(WELCOME if chat.empty else READING if reading else ACCEPTANCE)
        actions["reading_view"].setChecked(reading)
        self._refresh_welcome()
        for name, why in (("regenerate", chat.why_not_regenerate()), ("add_sidecar", "" if chat.model else "-")):
            actions[name].setEnabled(not why)
        actions["new_chat"].setEnabled(not chat.empty)
        running = chat.replying or chat.loading
        actions["stop"].setText(tr("&Stop") if running else tr("&Dismiss card or message"))
        self.show_tally()

    def _refresh_welcome(self) -> None:
        welcome, chat, recent = self._window.welcome, self._window.controller, self._window.memory.settings.recent
        if chat.model is None and chat.loading_path is None:
            last = recent[0] if recent else None
            welcome.offer_start(Path(last.path).name if last and is_there(last) else "")
        else:
            demo = (chat.loading_path or Path(chat.model.path if chat.model else "")) == self._demo()
            welcome.offer_prompts("demo" if demo else "general")

    @Slot()
    def show_tally(self) -> None:
        """The status line."""
        window, chat = self._window, self._window.controller
        window.status.show_tally(self._tally, chat.model)
        window.status.show_drafting(chat.model, window.panel.choices.draft, self._tally.note)
        window.status.activity.setText(tr("Stopping…") if chat.stopping else self._activity())

    def _activity(self) -> str:
        chat = self._window.controller
        if chat.replying:
            slow = "" if self._tally.stage else self._window.weights.sentence(self._tally.pass_name)
            return slow or self._tally.activity
        if chat.loading:
            return tr("Loading")
        return tr("Ready") if chat.model else tr("No model")
