"""A file layer between the reader and the disk that fails, is cut short, stalls or counts, as a test asks."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from pathlib import Path

import numpy as np

from engine.weights.file_layer import DiskFiles, OpenFile
from engine.weights.ranges import BLOCK


class FaultyFiles:
    """Delegates to the real files. All faults may be changed while threads read."""

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}
        """By file name: the errno that reads fail with."""
        self.ends: dict[str, int] = {}
        """By file name: where the file ends now."""
        self.missing: set[str] = set()
        """File names that cannot be opened."""
        self.gate = threading.Event()
        """Reads wait for it: clear it to stall the disk."""
        self.gate.set()
        self.direct = True
        """Hand on requests for unbuffered reads."""
        self.opened: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.reads: list[tuple[str, int, int]] = []
        """(file name, offset, bytes) of every read, in order."""
        self.lock = threading.Lock()

    def open(self, path: Path, *, direct: bool) -> OpenFile:
        if path.name in self.missing:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        self.opened[path.name] += 1
        return _FaultyFile(self, path, DiskFiles().open(path, direct=direct and self.direct))

    def read_count(self, name: str, offset: int) -> int:
        """How often the block at `offset` was read."""
        with self.lock:
            return sum(n == name and o <= offset < o + size for n, o, size in self.reads)


class _FaultyFile:
    def __init__(self, files: FaultyFiles, path: Path, real: OpenFile) -> None:
        self._files = files
        self._path = path
        self._real = real
        self._open = True
        self.size = real.size

    @property
    def direct(self) -> bool:
        return self._real.direct

    @direct.setter
    def direct(self, value: bool) -> None:
        raise AttributeError

    def read_at(self, offset: int, buffer: memoryview) -> int:
        assert self._open, "a closed file is read"
        if self.direct:  # Linux would read on through the page cache, Windows not at all
            assert np.frombuffer(buffer, np.uint8).ctypes.data % BLOCK == offset % BLOCK == len(buffer) % BLOCK == 0
        files, name = self._files, self._path.name
        files.gate.wait(30)
        with files.lock:
            files.reads.append((name, offset, len(buffer)))
        if name in files.errors:
            raise OSError(files.errors[name], "Input/output error")
        count = self._real.read_at(offset, buffer)
        return min(count, max(0, files.ends.get(name, 1 << 62) - offset))

    def close(self) -> None:
        assert self._open, "closed twice"
        self._open = False
        self._files.closed[self._path.name] += 1
        self._real.close()
