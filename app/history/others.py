"""What was said in the other conversations, for drafting by lookup: the newest of it, bounded. No Qt."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from app.history.schema import HistoryError, connect

MOST_CHARACTERS = 200_000
"""Half a second of encoding and indexing, once a conversation: more would seldom save as much."""
MOST_MESSAGES = 2000


@dataclass(frozen=True, slots=True)
class OtherTexts:
    """Reads them with a connection of its own, so that any thread may call it."""

    path: Path
    leave_out: int | None
    """The open conversation."""

    def __call__(self) -> list[str]:
        """The messages of the other conversations, the newest last; nothing if the history cannot be read."""
        try:
            with closing(connect(self.path)) as database:
                return self._read(database)
        except (HistoryError, sqlite3.Error):
            return []

    def _read(self, database: sqlite3.Connection) -> list[str]:
        query = """
            SELECT m.content FROM messages m JOIN conversations c ON c.id = m.conversation
            WHERE c.deleted IS NULL AND m.deleted IS NULL AND m.content != '' AND c.id IS NOT ? AND m.state != 'running'
            ORDER BY m.id DESC LIMIT ?
        """
        texts: list[str] = []
        room = MOST_CHARACTERS
        for (text,) in database.execute(query, (self.leave_out, MOST_MESSAGES)):
            texts.append(text[:room])  # of a huge one what fits: it must not hide all the others
            room -= len(text)
            if room <= 0:
                break
        return texts[::-1]
