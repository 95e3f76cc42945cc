"""Brings the rounds of a conversation from the history to the inspector, a few in each turn of the event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.cells import Entry, Reply
from app.history.columns import StoredReply

MOST_ROUNDS = 5000
"""The newest of a conversation; with more the plots say nothing new, and memory would be spent for nobody."""
SLICE = 32
"""Rounds a turn: some ten milliseconds of reading at most."""
DELAY_MS = 120
"""The conversation itself is shown first."""


class StoredFeed(QObject):
    """Reads the replies of one path after the other, oldest first."""

    read = Signal(object)  # list[Round]
    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[tuple[Reply, int, int]] = deque()
        self._turn = QTimer(self, singleShot=True)
        self._turn.timeout.connect(self._read_some)

    @property
    def running(self) -> bool:
        """Whether there is still something to read."""
        return bool(self._waiting)

    def start(self, entries: Sequence[Entry]) -> None:
        """Read the newest rounds of these entries, in place of what was being read."""
        self._waiting.clear()
        room = MOST_ROUNDS
        for entry in reversed(entries):
            if isinstance(entry, Reply) and not entry.active and room > 0:
                count = len(entry.rounds)
                self._waiting.appendleft((entry, max(0, count - room), count))
                room -= count
        if self._waiting:
            self._turn.start(DELAY_MS)

    def stop(self) -> None:
        """Leave the rest unread."""
        self._turn.stop()
        self._waiting.clear()

    @Slot()
    def _read_some(self) -> None:
        if not self._waiting:
            return
        reply, first, last = self._waiting.popleft()
        end = min(first + SLICE, last)
        if end < last:
            self._waiting.appendleft((reply, end, last))
        # The objects are kept by the reply: inspector and transcript know a round by its identity.
        found = reply.hold(first, end) if isinstance(reply, StoredReply) else list(reply.rounds[first:end])
        self.read.emit(found)
        if self._waiting:
            self._turn.start(0)
        else:
            self.ended.emit()
