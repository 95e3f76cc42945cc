"""The rounds of replies in the history, and what is made of them when a reply has ended."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import suppress

from app.chat.cells import Reply
from app.history.codec import ending_from_text, ending_to_text, round_from_text, round_to_text
from app.history.columns import StoredReply, columns_of
from engine import CommittedToken, Failed, Finished, Round

_UNREADABLE = Round(0, 0, "answer", (), (CommittedToken(0, "\ufffd", "model", "model"),), 0.0, 0.0)
"""Stands in the place of a round that cannot be understood, so that the others keep their numbers."""


class RoundTable:
    """Rounds in, replies out. Uses the connection of whoever made it, in the same thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def count(self, message: int) -> int:
        return int(self._db.execute("SELECT count(*) FROM rounds WHERE message = ?", (message,)).fetchone()[0])

    def add(self, message: int, number: int, record: Round) -> None:
        """Write one round."""
        self._db.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", (message, number, round_to_text(record)))

    def fetch(self, message: int, first: int, last: int) -> list[Round]:
        """Rounds first…last-1; one that is missing or cannot be understood is shown as a replacement character."""
        query = "SELECT number, record FROM rounds WHERE message = ? AND number >= ? AND number < ?"
        found = dict(self._db.execute(query, (message, first, last)))
        return [(round_from_text(found[n]) if n in found else None) or _UNREADABLE for n in range(first, last)]

    def tokens(self, message: int) -> tuple[int, ...]:
        """The token ids of a reply."""
        records = self.fetch(message, 0, self.count(message))
        return tuple(token.token for record in records for token in record.committed)

    def gather(self, message: int) -> Reply:
        """A reply out of its rounds."""
        reply = Reply()
        for record in self.fetch(message, 0, self.count(message)):
            reply.add_round(record)
        return reply

    def settle(self, message: int, state: str, reply: Reply, last: Finished | Failed | None = None) -> None:
        """Write down what a reply said and how it ended. Belongs into a transaction; `gather`, which may take seconds,
        comes before, so that nobody waits for it."""
        self._db.execute(
            "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)", (message, len(reply.rounds), *columns_of(reply))
        )
        ending = ending_to_text(last) if last is not None else ""
        query = "UPDATE messages SET content = ?, state = ?, ending = ? WHERE id = ?"
        self._db.execute(query, (reply.text, state, ending, message))

    def reply(self, message: int) -> Reply:
        """A reply as the transcript shows it; its rounds are read when somebody asks for them."""
        row = self._db.execute("SELECT rounds, texts, columns FROM cells WHERE message = ?", (message,)).fetchone()
        reply: Reply | None = None
        if row is not None:
            rounds, texts, columns = row
            with suppress(ValueError, TypeError, struct.error):
                reply = StoredReply(texts, columns, rounds, lambda first, last: self.fetch(message, first, last))
        if reply is None:
            reply = self.gather(message)
            reply.active = False
        ending = self.ending(message)
        reply.stats = ending.stats if ending is not None else None
        return reply

    def ending(self, message: int) -> Finished | Failed | None:
        """How a reply ended; None if nobody saw its end."""
        row = self._db.execute("SELECT ending, content FROM messages WHERE id = ?", (message,)).fetchone()
        return ending_from_text(*row) if row and row[0] else None
