"""What the program noted: a bounded list for the log panel, and a file in the user's log folder that starts afresh."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

LINES = 2000
"""Kept for the panel."""
FILE_BYTES = 1 << 20
FILES = 3
FORMAT = "%(asctime)s  %(levelname)-7s  %(name)s: %(message)s"


class Buffer(logging.Handler):
    """Keeps the latest lines. Handlers may be called by any thread: a deque's append and copy are safe."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=LINES)
        self.count = 0
        """Lines ever noted."""
        self.setFormatter(logging.Formatter(FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self._lines.append(self.format(record))
        self.count += 1

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines.copy())


BUFFER = Buffer()


def start(folder: Path | None) -> Path | None:
    """Note from now on, in memory and (if the folder can be written to) in a file there; returns the file."""
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    if BUFFER not in root.handlers:
        root.addHandler(BUFFER)
    if folder is None:
        return None
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "draftscope.log"
        file = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=FILES - 1, encoding="utf-8", delay=True)
        file.setFormatter(logging.Formatter(FORMAT))
        root.addHandler(file)
        return path
    return None


def stop() -> None:
    """Note nothing more; for the end of the program."""
    root = logging.getLogger()
    for handler in (*root.handlers,):
        if handler is BUFFER or isinstance(handler, RotatingFileHandler):
            root.removeHandler(handler)
            if handler is not BUFFER:
                handler.close()
