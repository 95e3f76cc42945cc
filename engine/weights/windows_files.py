"""Reads past the page cache on Windows: FILE_FLAG_NO_BUFFERING, with several reads of one file under way at once."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_void_p
from ctypes.wintypes import BOOL, HANDLE, LARGE_INTEGER, LPCWSTR
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from engine.weights.buffers import aligned_buffer
from engine.weights.ranges import BLOCK

GENERIC_READ = 0x8000_0000
SHARE_ALL = 0x1 | 0x2 | 0x4
"""Others may read, write and delete the file meanwhile, as they may on other systems."""
OPEN_EXISTING = 3
FLAGS = 0x2000_0000 | 0x4000_0000
"""FILE_FLAG_NO_BUFFERING and FILE_FLAG_OVERLAPPED: without the second, Windows reads a handle's requests one by one."""
INVALID_HANDLE = c_void_p(-1).value
ERROR_HANDLE_EOF = 38
ERROR_IO_PENDING = 997
MOST_BYTES = 1 << 30
"""Per read: its length is told in 32 bits."""
DWORD = ctypes.c_uint32  # that of wintypes has 64 bits on other systems


class Overlapped(ctypes.Structure):
    """OVERLAPPED: where a read begins, and what tells that it has ended."""

    _fields_ = (
        ("Internal", ctypes.c_size_t),
        ("InternalHigh", ctypes.c_size_t),
        ("Offset", DWORD),
        ("OffsetHigh", DWORD),
        ("hEvent", HANDLE),
    )


_REQUEST = ctypes.POINTER(Overlapped)
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "CreateFileW": (HANDLE, LPCWSTR, DWORD, DWORD, c_void_p, DWORD, DWORD, HANDLE),
    "CreateEventW": (HANDLE, c_void_p, BOOL, BOOL, LPCWSTR),
    "GetFileSizeEx": (BOOL, HANDLE, ctypes.POINTER(LARGE_INTEGER)),
    "ReadFile": (BOOL, HANDLE, c_void_p, DWORD, ctypes.POINTER(DWORD), _REQUEST),
    "GetOverlappedResult": (BOOL, HANDLE, _REQUEST, ctypes.POINTER(DWORD), BOOL),
    "CancelIoEx": (BOOL, HANDLE, _REQUEST),
    "CloseHandle": (BOOL, HANDLE),
}
"""What each function returns, then what it takes."""


class Kernel(Protocol):
    """What is needed of kernel32, by its own names; a test has one of its own."""

    CreateFileW: Any
    CreateEventW: Any
    GetFileSizeEx: Any
    ReadFile: Any
    GetOverlappedResult: Any
    CancelIoEx: Any
    CloseHandle: Any

    def last_error(self) -> int:
        """The error of this thread's last call."""


def declare(library: Any) -> None:
    """Tell ctypes what the functions take and return: handles would be cut to 32 bits otherwise."""
    for name, (result, *arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


@cache
def kernel32() -> Kernel | None:
    """The system's own; None on other systems."""
    kernel: Kernel | None = None
    if sys.platform == "win32":
        library: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # a call lets other threads run
        declare(library)
        library.last_error = ctypes.get_last_error
        kernel = library
    return kernel


def split(offset: int) -> tuple[int, int]:
    """The low and the high 32 bits of a place in a file."""
    return offset & 0xFFFF_FFFF, offset >> 32


def windows_error(code: int, path: Path) -> OSError:
    """An error of Windows as Python raises it: with the system's words, and as FileNotFoundError and the like."""
    text = f"Windows error {code}"
    if sys.platform == "win32":
        text = ctypes.FormatError(code).strip().rstrip(".") or text
    return OSError(0, text, str(path), code)


class UnbufferedFile:
    """A file that is open for reads of whole blocks into aligned memory, from any thread."""

    direct = True

    def __init__(self, path: Path, kernel: Kernel) -> None:
        """Raises OSError, also where the drive refuses reads by blocks of ours."""
        self._path = path
        self._kernel = kernel
        self._events: list[Any] = []  # not in use
        self._handle = kernel.CreateFileW(str(path), GENERIC_READ, SHARE_ALL, None, OPEN_EXISTING, FLAGS, None)
        if self._handle in (None, INVALID_HANDLE):
            raise windows_error(kernel.last_error(), path)
        try:
            size = LARGE_INTEGER()
            if not kernel.GetFileSizeEx(self._handle, ctypes.byref(size)):
                raise windows_error(kernel.last_error(), path)
            self.size: int = size.value
            self.read_at(0, aligned_buffer(BLOCK).data)  # only here one says that its sectors are larger than BLOCK
        except BaseException:
            self.close()
            raise

    def read_at(self, offset: int, buffer: memoryview) -> int:
        """As `OpenFile.read_at`; the last block of a file comes as far as it goes."""
        length = min(buffer.nbytes, MOST_BYTES)
        if length == 0:
            return 0
        event = self._take_event()
        try:
            return self._read(offset, ctypes.c_char.from_buffer(buffer), length, event)
        finally:
            self._events.append(event)

    def _read(self, offset: int, target: ctypes.c_char, length: int, event: Any) -> int:
        kernel, count = self._kernel, DWORD()
        low, high = split(offset)
        request = Overlapped(Offset=low, OffsetHigh=high, hEvent=event)
        ended = False
        try:
            begun = kernel.ReadFile(self._handle, ctypes.byref(target), length, None, ctypes.byref(request))
            code = 0 if begun else kernel.last_error()
            if code in (0, ERROR_IO_PENDING):
                good = kernel.GetOverlappedResult(self._handle, ctypes.byref(request), ctypes.byref(count), True)
                code = 0 if good else kernel.last_error()
            ended = True
        finally:
            if not ended:  # an exception came between: nobody may write into memory that is about to be freed
                kernel.CancelIoEx(self._handle, ctypes.byref(request))
                kernel.GetOverlappedResult(self._handle, ctypes.byref(request), ctypes.byref(count), True)
        if code == ERROR_HANDLE_EOF:
            return 0
        if code:
            raise windows_error(code, self._path)
        return count.value

    def _take_event(self) -> Any:
        """What one read at a time is waited for with."""
        try:
            return self._events.pop()
        except IndexError:
            event = self._kernel.CreateEventW(None, True, False, None)  # ReadFile resets it
            if not event:
                raise windows_error(self._kernel.last_error(), self._path) from None
            return event

    def close(self) -> None:
        for handle in (self._handle, *self._events):
            self._kernel.CloseHandle(handle)
        self._events.clear()


def open_unbuffered(path: Path, kernel: Kernel | None = None) -> UnbufferedFile | None:
    """The file, or None where it cannot be read so: other systems, and drives and files that refuse it."""
    kernel = kernel or kernel32()
    if kernel is None:
        return None
    try:
        return UnbufferedFile(path, kernel)
    except OSError:
        return None  # whoever opens it the usual way hears what is wrong, if anything is
