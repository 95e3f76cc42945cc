"""Looks at the weights twice a second while a model is loaded, and notices when a pass takes long."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.residency.glance import Glance, long_pass, read_speed

EVERY_MS = 500
LONG_S = 1.5
"""Seconds without a record after which a person is told what goes on."""
_SMOOTH = 0.5
"""Weight of the newest speed in the one that is shown."""


class Watch(QObject):
    """`looked` follows every look. Tell it of records with `heard`, so that it knows what has been quiet for long."""

    looked = Signal(object)  # Glance

    def __init__(
        self,
        look: Callable[[], Glance | None],
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._clock = clock
        self._heard = clock()
        self.glance = Glance()
        self.speed = 0.0
        """Bytes per second from disk, lately."""
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.look)

    def start(self) -> None:
        """Begin to look."""
        self._timer.start()
        self.look()

    def stop(self) -> None:
        """Look no more."""
        self._timer.stop()

    def heard(self) -> None:
        """The engine has just told something."""
        self._heard = self._clock()

    @Slot()
    def look(self) -> None:
        """Look now."""
        found = self._look() or Glance()
        found = replace(found, at=self._clock())
        newest = read_speed(self.glance, found)
        self.speed = _SMOOTH * newest + (1 - _SMOOTH) * self.speed if newest and self.speed else newest
        self.glance = found
        self.looked.emit(found)

    def sentence(self, doing: str) -> str:
        """What a pass does that takes long, `doing` being what it is for; empty as long as all goes quickly."""
        quiet = self._clock() - self._heard
        if not self.glance.layers or (quiet < LONG_S and self.glance.stall is None):
            return ""
        return long_pass(doing, self.glance, self.speed)
