"""Open files, shared by the I/O threads. A file that gave an error is opened anew for the next read."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from engine.weights.file_layer import FileLayer, OpenFile, read_error


@dataclass(slots=True, eq=False)
class _Handle:
    file: OpenFile
    users: int = 0
    retired: bool = False


class Handles:
    """Lends open files to threads and closes each when its last borrower is done with it."""

    def __init__(self, files: FileLayer, *, direct: bool) -> None:
        self._files = files
        self._direct = direct
        self._lock = threading.Lock()
        self._handles: dict[Path, _Handle] = {}

    def borrow(self, path: Path) -> _Handle:
        """Raises ReadError."""
        with self._lock:
            handle = self._handles.get(path)
            if handle is not None:
                handle.users += 1
                return handle
        try:
            opened = self._files.open(path, direct=self._direct)  # outside the lock: a disk may take its time
        except OSError as error:
            raise read_error(path, 0, error) from error
        with self._lock:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = _Handle(opened)
            else:
                opened.close()
            handle.users += 1
            return handle

    def give_back(self, path: Path, handle: _Handle, *, broken: bool = False) -> None:
        """Every `borrow` ends with this; `broken` makes the next `borrow` open the file again."""
        with self._lock:
            handle.users -= 1
            if broken and self._handles.get(path) is handle:
                del self._handles[path]
                handle.retired = True
            if handle.retired and handle.users == 0:
                handle.file.close()

    def close(self) -> None:
        with self._lock:
            for handle in self._handles.values():
                handle.retired = True
                if handle.users == 0:
                    handle.file.close()
            self._handles.clear()
