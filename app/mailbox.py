"""The mailbox between the worker's thread and the window's: records go in one by one and come out in batches."""

from __future__ import annotations

import threading
from collections import deque

from engine import CancelToken, LoadProgress, PrefillProgress, Record

CAPACITY = 4096


class Mailbox:
    """A bounded queue of records with one writer and one reader, one for each load or reply.

    A progress record replaces an unread one of its kind, so progress never piles up. When the mailbox is full the
    writer waits: a window that is busy for a moment slows the engine instead of losing a token or filling the memory.
    """

    def __init__(self, cancel: CancelToken, capacity: int = CAPACITY) -> None:
        self._cancel = cancel
        self._capacity = capacity
        self._records: deque[Record] = deque()
        self._changed = threading.Condition()

    def put(self, record: Record) -> None:
        """Add a record; waits while the mailbox is full, unless the job was cancelled (then its few last ones fit)."""
        with self._changed:
            progress = isinstance(record, LoadProgress | PrefillProgress)
            if progress and self._records and type(self._records[-1]) is type(record):
                self._records[-1] = record
                return
            while len(self._records) >= self._capacity and not self._cancel.cancelled:
                self._changed.wait(0.1)
            self._records.append(record)

    def drain(self, limit: int | None = None) -> tuple[Record, ...]:
        """Take the oldest records out, at most `limit` of them."""
        with self._changed:
            count = len(self._records) if limit is None else min(limit, len(self._records))
            taken = tuple(self._records.popleft() for _ in range(count))
            self._changed.notify_all()
        return taken

    def __len__(self) -> int:
        return len(self._records)
