"""What happens once the window is on the screen, in the order in which a person needs it.

Nothing that computes comes before the first paint: then the model is loaded by the engine's thread, and when that has
ended the plots are made. Both need the interpreter's lock, so plots made earlier would only keep the model waiting.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot

from app.main_window import MainWindow
from app.milestones import Milestones

UNSEEN_MS = 3000
"""A window that opens minimised is not painted; what waits for it begins after this time all the same."""


class Start(QObject):
    """Waits for the first paint of a window, then does `steps`, then has made ready what comes next."""

    ready = Signal()
    """The model is usable, or there is none to wait for."""

    def __init__(self, window: MainWindow, steps: Sequence[Callable[[], object]], milestones: Milestones) -> None:
        super().__init__(window)
        self._window = window
        self._steps = steps
        self._milestones = milestones
        self._begun = False
        window.installEventFilter(self)
        QTimer.singleShot(0, self, lambda: QTimer.singleShot(UNSEEN_MS, self, self._begin))
        chat = window.controller
        for outcome in (chat.load_failed, chat.load_cancelled):
            outcome.connect(self._prepare)
        chat.loaded.connect(self._on_loaded)
        window.inspector.plots_made.connect(self._settle)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice the first paint."""
        if event.type() == QEvent.Type.Paint:
            self._window.removeEventFilter(self)
            QTimer.singleShot(0, self, self._on_painted)  # when all parts of the window have painted
        return super().eventFilter(watched, event)

    @Slot()
    def _on_painted(self) -> None:
        self._milestones.reach("first paint")  # not translated: for measurements
        self._begin()

    @Slot()
    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        for step in self._steps:
            step()
        if not self._window.controller.loading:
            self._prepare()

    @Slot()
    def _on_loaded(self) -> None:
        self._milestones.reach("model usable")  # not translated: for measurements
        self._prepare()

    @Slot()
    def _prepare(self) -> None:
        """Make what the next click or message needs."""
        self._settle()
        self._window.inspector.prepare()
        self.ready.emit()

    @Slot()
    def _settle(self) -> None:
        """What is there now stays: keep the collector from walking over it while a reply streams, which took 70 ms."""
        gc.freeze()
