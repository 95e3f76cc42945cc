"""The pump: carries records from a job's mailbox to the widgets at the pace of the eye, not of the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.mailbox import Mailbox

TEXT_MS = 33
PLOTS_MS = 125
"""Plots redrawn more often were measured to slow the engine: both need the interpreter's lock."""
BATCH = 256
"""Records a tick at most, so that one tick never holds up the event loop."""


class Pump(QObject):
    """Two timers that run only while a mailbox is followed."""

    records = Signal(object)  # tuple[Record, ...], never empty
    plots_due = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._mailbox: Mailbox | None = None
        self._text = QTimer(self, interval=TEXT_MS)
        self._text.timeout.connect(self._carry)
        self._plots = QTimer(self, interval=PLOTS_MS)
        self._plots.timeout.connect(self.plots_due)

    def follow(self, mailbox: Mailbox) -> None:
        """Start carrying from this mailbox."""
        self._mailbox = mailbox
        self._text.start()
        self._plots.start()

    def stop(self, *, flush: bool) -> None:
        """Stop carrying; with `flush`, first carry what is left and have the plots drawn a last time."""
        self._text.stop()
        self._plots.stop()
        mailbox, self._mailbox = self._mailbox, None
        if flush and mailbox is not None:
            if rest := mailbox.drain():
                self.records.emit(rest)
            self.plots_due.emit()

    @Slot()
    def _carry(self) -> None:
        if self._mailbox is not None and (taken := self._mailbox.drain(BATCH)):
            self.records.emit(taken)
