"""Brings what other threads find out to the window's thread, without their touching a Qt object.

A signal that a thread sends is only safe while its sender lives, and the window may go at any moment, with everything
that belongs to it. So threads put things into a plain queue, and a timer that goes with the window takes them out.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

EVERY_MS = 30


class Courier(QObject):
    """Looks into `box` between `expect` and `rest`; other threads get the box, never the courier."""

    brought = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.box: SimpleQueue[Any] = SimpleQueue()
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.fetch)

    def expect(self) -> None:
        """Something will be put into the box."""
        self._timer.start()

    def rest(self) -> None:
        """Nothing more will come, or nobody waits for it; what is in the box is thrown away."""
        self._timer.stop()
        self.box = SimpleQueue()

    @Slot()
    def fetch(self) -> None:
        """Bring what is there."""
        try:
            while True:
                self.brought.emit(self.box.get_nowait())
        except Empty:
            return
