"""Writes a reply into the history as it happens, in the engine's thread: what is shown has been written before.

So a program that is killed loses at most the round that was running, and the window never waits for the disk.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.history.rounds import RoundTable
from app.history.schema import connect
from engine import Failed, Finished, Record, Round


class Recorder:
    """Takes the records of one reply, all in one thread. A full disk must not end a reply: `problem` tells of it."""

    def __init__(self, path: Path, message: int) -> None:
        self._path = path
        self.message = message
        self._db: sqlite3.Connection | None = None
        self._number = 0
        self.problem = ""
        """A sentence for the person, once something could not be written."""

    def __call__(self, record: Record) -> None:
        """Write a record; what cannot be written is left, and told in `problem`."""
        if self.problem or not isinstance(record, Round | Finished | Failed):
            return
        try:
            self._write(record)
        except sqlite3.Error as error:
            self.problem = f"The reply could not be kept in {self._path}: {error}."
            self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _write(self, record: Round | Finished | Failed) -> None:
        if self._db is None:
            self._db = connect(self._path)
            self._number = RoundTable(self._db).count(self.message)
        table = RoundTable(self._db)
        if isinstance(record, Round):
            table.add(self.message, self._number, record)
            self._number += 1
            return
        self._db.execute("BEGIN IMMEDIATE")
        table.settle(self.message, "done", record)
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self.close()
