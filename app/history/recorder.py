"""Writes a reply into the history as it happens, in the engine's thread: what is shown has been written before.

So a program that is killed loses at most the round that was running, and the window never waits for the disk. While the
file cannot be written to, what comes is kept in memory and tried again now and then, and once more at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from app.history.rounds import RoundTable
from app.history.schema import Connection, HistoryError, connect
from app.language import tr
from engine import Failed, Finished, Record, Round

AGAIN_S = 10.0


class Recorder:
    """Takes the records of one reply, all in one thread. A full disk must not end a reply: `problem` tells of it."""

    def __init__(self, path: Path, message: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self.message = message
        self._clock = clock
        self._db: Connection | None = None
        self._number = 0
        self._waiting: list[Round] = []
        self._failed_at: float | None = None
        self.problem = ""
        """A sentence for the person, if in the end something could not be written."""

    def __call__(self, record: Record) -> None:
        """Write a record, after those that could not be written before it."""
        if not isinstance(record, Round | Finished | Failed):
            return
        ends = not isinstance(record, Round)
        if isinstance(record, Round):
            self._waiting.append(record)
        if self._failed_at is not None and not ends and self._clock() - self._failed_at < AGAIN_S:
            return
        try:
            self._write(None if isinstance(record, Round) else record)
            self._failed_at = None
        except HistoryError as error:
            self._failed_at = self._clock()
            self.close()
            if ends:
                self.problem = f"{tr('The reply is not kept: copy what you need of it.')} {error}"

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _write(self, end: Finished | Failed | None) -> None:
        if self._db is None:
            self._db = connect(self._path)
            self._number = RoundTable(self._db).count(self.message)
        table = RoundTable(self._db)
        while self._waiting:
            table.add(self.message, self._number, self._waiting[0])
            self._number += 1
            self._waiting.pop(0)
        if end is None:
            return
        reply = table.gather(self.message)
        self._db.execute("BEGIN IMMEDIATE")
        table.settle(self.message, "done", reply, end)
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self.close()
