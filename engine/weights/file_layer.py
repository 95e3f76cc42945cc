"""Files as the reader sees them: open, and read at a position. Tests put a layer in between that fails on purpose."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from pathlib import Path
from typing import IO, Protocol

from engine.errors import ReadError
from engine.weights.ranges import BLOCK
from engine.weights.windows_files import open_unbuffered

_F_NOCACHE = 48  # macOS, fcntl.h


class OpenFile(Protocol):
    """A file that is open for positional reads, from any thread."""

    size: int
    """Bytes, when it was opened."""
    direct: bool
    """Reads bypass the page cache; offset, length and address must be multiples of BLOCK."""

    def read_at(self, offset: int, buffer: memoryview) -> int:
        """Read up to len(buffer) bytes from `offset`; how many came (0 at the end of the file). Raises OSError."""

    def close(self) -> None: ...


class FileLayer(Protocol):
    """Opens files. `direct` asks for reads that leave the page cache alone, where the platform can."""

    def open(self, path: Path, *, direct: bool) -> OpenFile: ...


class DiskFiles:
    """The real file system."""

    def open(self, path: Path, *, direct: bool) -> OpenFile:
        """Raises OSError."""
        if not hasattr(os, "preadv"):  # Windows
            return (open_unbuffered(path) if direct else None) or _SeekingFile(path)
        return _PositionalFile(path, direct)


class _PositionalFile:
    """pread on POSIX: O_DIRECT on Linux, F_NOCACHE on macOS, and page-cache hints where neither works."""

    def __init__(self, path: Path, direct: bool) -> None:
        self.direct = False
        self._drop_cache = direct
        self._path = path
        flag = getattr(os, "O_DIRECT", 0) if direct else 0
        try:
            self._fd = os.open(path, os.O_RDONLY | flag)
            self.direct = bool(flag)
        except OSError as error:
            if not flag or error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
            self._fd = os.open(path, os.O_RDONLY)  # the file system has no O_DIRECT
        self.size = os.fstat(self._fd).st_size
        if direct and sys.platform == "darwin":
            import fcntl

            with contextlib.suppress(OSError):
                fcntl.fcntl(self._fd, _F_NOCACHE, 1)

    def read_at(self, offset: int, buffer: memoryview) -> int:
        try:
            count = os.preadv(self._fd, [buffer], offset)
        except OSError as error:
            if not self.direct or error.errno != errno.EINVAL:
                raise
            self._become_buffered()
            count = os.preadv(self._fd, [buffer], offset)
        if self._drop_cache and not self.direct and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, offset, count, os.POSIX_FADV_DONTNEED)
        return count

    def _become_buffered(self) -> None:
        """Some file systems accept O_DIRECT at open and refuse it at the first read."""
        import fcntl

        flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        self.direct = False

    def close(self) -> None:
        os.close(self._fd)


class _SeekingFile:
    """Where there is no positional read: seek and read under a lock."""

    direct = False

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._lock = threading.Lock()
        self.size = os.fstat(self._file.fileno()).st_size

    def read_at(self, offset: int, buffer: memoryview) -> int:
        with self._lock:
            self._file.seek(offset)
            return self._file.readinto(buffer) or 0  # type: ignore[attr-defined]

    def close(self) -> None:
        self._file.close()


def read_exactly(file: OpenFile, path: Path, offset: int, buffer: memoryview, needed: int) -> None:
    """Fill at least the first `needed` bytes of `buffer` from `offset` on.

    Raises:
        ReadError: the disk reported an error, or the file has become shorter than it was.
    """
    got = 0
    while got < needed:
        try:
            count = file.read_at(offset + got, buffer[got:])
        except OSError as error:
            raise read_error(path, offset + got, error) from error
        if count <= 0 or (file.direct and count % BLOCK and got + count < needed):
            end = offset + got + max(count, 0)
            raise ReadError(
                f"{path.name} ends at byte {end}, {offset + needed - end} bytes too early: it was cut short while in"
                f" use. Put the whole file back, then continue ({path})."
            )
        got += count


def read_error(path: Path, offset: int, error: OSError) -> ReadError:
    """The sentence for an error of the operating system."""
    reason = error.strerror or str(error) or type(error).__name__
    return ReadError(f"Reading {path.name} at byte {offset} failed: {reason}. Check the disk, then continue ({path}).")
