"""Ctrl+C and a polite end of the session close the window as its own button would."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from PySide6.QtCore import QObject, QSocketNotifier, Slot


class SignalWatch(QObject):
    """Calls `stop` in the event loop when the process is asked to end.

    Qt's loop runs no Python while nothing happens, so a Python signal handler alone would wait for the next mouse move;
    the interpreter also writes each signal to a socket, and that wakes the loop.
    """

    def __init__(self, stop: Callable[[], object], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._stop = stop
        self._inner, self._outer = socket.socketpair()
        for end in (self._inner, self._outer):
            end.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._inner.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._ignore) for number in (signal.SIGINT, signal.SIGTERM)}
        self._notifier = QSocketNotifier(self._outer.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_signal)

    def release(self) -> None:
        """Put everything back as it was."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._inner.close()
        self._outer.close()

    @staticmethod
    def _ignore(_number: int, _frame: object) -> None:
        """What is to be done is done in the event loop."""

    @Slot()
    def _on_signal(self) -> None:
        self._outer.recv(64)
        self._stop()
