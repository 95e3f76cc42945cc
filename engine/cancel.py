"""How a person's Stop, or "answer now", reaches a running computation."""

from __future__ import annotations

import threading

from engine.errors import Cancelled


class CancelToken:
    """A flag set by one thread and checked by another, per layer and per disk read.

    It is never reset: each load and each reply gets a new one, so that a late Stop cannot hit the next job.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the job that holds this token to stop at its next check."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Cancelled` if `cancel` was called."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`, or until cancelled; true if cancelled."""
        return self._event.wait(seconds)


class AnswerNow:
    """A flag set by one thread and looked at by another before each round: enough thought, the answer please."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ask(self) -> None:
        """Let the reply that holds this flag close its thought, now or whenever it begins one."""
        self._event.set()

    @property
    def asked(self) -> bool:
        return self._event.is_set()
