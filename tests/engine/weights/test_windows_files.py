"""Reads past the page cache on Windows: against a kernel32 of our own, and where there is one, against the system's."""

from __future__ import annotations

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ReadError
from engine.weights import file_layer, windows_files
from engine.weights.buffers import aligned_buffer
from engine.weights.file_layer import DiskFiles, read_exactly
from engine.weights.ranges import BLOCK
from engine.weights.windows_files import (
    ERROR_HANDLE_EOF,
    ERROR_IO_PENDING,
    INVALID_HANDLE,
    PROTOTYPES,
    Overlapped,
    UnbufferedFile,
    kernel32,
    open_unbuffered,
    split,
)

CONTENT = bytes(range(256)) * 80 + b"the end"  # five blocks and a part of one
NOT_FOUND, DENIED, INVALID_PARAMETER, CRC = 2, 5, 87, 23
on_windows = pytest.mark.skipif(sys.platform != "win32", reason="Windows")


class OwnKernel:
    """The functions of kernel32 for one file that is open at a time, called through ctypes as the real ones are."""

    def __init__(self, content: bytes = CONTENT, at_once: bool = False) -> None:
        self.content = content
        self.at_once = at_once
        """Reads have ended when ReadFile returns, as those of the page cache."""
        self.fails: dict[str, int] = {}
        """By a function's name: the error it gives."""
        self.opened_with: tuple[int, int, int] = (0, 0, 0)
        self.open: set[int] = set()
        self.cancelled = 0
        self.most_at_once = 0
        self._under_way: dict[int, int] = {}  # event → bytes
        self._error = threading.local()
        self._next = iter(range(0x1_0000_0000, 0x2_0000_0000))  # handles may have 64 bits
        self._lock = threading.Lock()
        for name, (result, *arguments) in PROTOTYPES.items():
            setattr(self, name, ctypes.CFUNCTYPE(result, *arguments)(getattr(self, f"_{name}")))

    def last_error(self) -> int:
        code: int = self._error.code
        return code

    def _fail(self, code: int) -> bool:
        self._error.code = code
        return code == 0

    def _handle(self) -> int:
        with self._lock:
            handle = next(self._next)
            self.open.add(handle)
            return handle

    def _CreateFileW(
        self, name: str, access: int, share: int, _security: None, how: int, flags: int, _template: None
    ) -> int | None:
        assert name.endswith(".bin")
        assert access == 0x80000000
        assert share == 7
        if not self._fail(self.fails.get("CreateFileW", 0)):
            return INVALID_HANDLE
        self.opened_with = (access, how, flags)
        return self._handle()

    def _CreateEventW(self, _security: None, manual: int, set_: int, _name: None) -> int:
        assert manual
        assert not set_
        return self._handle() if self._fail(self.fails.get("CreateEventW", 0)) else 0

    def _GetFileSizeEx(self, handle: int, size: Any) -> bool:
        assert handle in self.open
        size.contents.value = len(self.content)
        return self._fail(self.fails.get("GetFileSizeEx", 0))

    def _ReadFile(self, handle: int, address: int, length: int, count: Any, request: Any) -> bool:
        where = request.contents
        offset = where.Offset + (where.OffsetHigh << 32)
        assert handle in self.open
        assert where.hEvent in self.open
        assert not count
        if offset % 512 or length % 512 or address % 512:
            return self._fail(INVALID_PARAMETER)
        if code := self.fails.get("ReadFile", 0):
            return self._fail(code)
        if offset >= len(self.content):
            return self._fail(ERROR_HANDLE_EOF)
        piece = self.content[offset : offset + length]
        ctypes.memmove(address, piece, len(piece))
        with self._lock:
            assert where.hEvent not in self._under_way, "two reads wait for one event"
            self._under_way[where.hEvent] = len(piece)
            self.most_at_once = max(self.most_at_once, len(self._under_way))
        return self._fail(0 if self.at_once else ERROR_IO_PENDING)

    def _GetOverlappedResult(self, handle: int, request: Any, count: Any, wait: int) -> bool:
        assert handle in self.open
        assert wait
        if code := self.fails.get("GetOverlappedResult", 0):
            self._under_way.clear()
            return self._fail(code)
        threading.Event().wait(0.001)
        with self._lock:
            count.contents.value = self._under_way.pop(request.contents.hEvent, 0)
        return self._fail(0)

    def _CancelIoEx(self, handle: int, request: Any) -> bool:
        self.cancelled += 1
        return self._fail(0)

    def _CloseHandle(self, handle: int) -> bool:
        self.open.remove(handle)
        return self._fail(0)


PATH = Path("weights.bin")


def read(file: UnbufferedFile, offset: int, nbytes: int) -> bytes:
    buffer = aligned_buffer(nbytes)
    count = file.read_at(offset, buffer.data)
    return buffer.tobytes()[:count]


@pytest.mark.parametrize("at_once", [True, False])
def test_reads_at_a_place_and_to_the_end(at_once: bool) -> None:
    kernel = OwnKernel(at_once=at_once)
    file = UnbufferedFile(PATH, kernel)
    assert file.direct
    assert file.size == len(CONTENT)
    assert read(file, BLOCK, 2 * BLOCK) == CONTENT[BLOCK : 3 * BLOCK]
    assert read(file, 5 * BLOCK, BLOCK) == b"the end"  # the last block goes only so far
    assert read(file, 6 * BLOCK, BLOCK) == b""
    assert read(file, 0, 0) == b""
    buffer = aligned_buffer(2 * BLOCK)
    read_exactly(file, PATH, 4 * BLOCK, buffer.data, BLOCK + 7)
    assert buffer.tobytes()[: BLOCK + 7] == CONTENT[4 * BLOCK :]
    file.close()
    assert not kernel.open


def test_what_the_file_is_opened_with() -> None:
    kernel = OwnKernel()
    UnbufferedFile(PATH, kernel).close()
    assert kernel.opened_with == (0x80000000, 3, 0x20000000 | 0x40000000)


def test_places_beyond_four_gigabytes() -> None:
    assert split(0) == (0, 0)
    assert split(2**32 - 1) == (0xFFFFFFFF, 0)
    assert split(5 * 2**32 + 3 * BLOCK) == (3 * BLOCK, 5)
    request = Overlapped(Offset=split(2**40 + 7)[0], OffsetHigh=split(2**40 + 7)[1])
    assert (request.Offset, request.OffsetHigh) == (7, 256)


def test_the_structure_is_laid_out_as_windows_has_it() -> None:
    size = ctypes.sizeof(ctypes.c_void_p)
    assert ctypes.sizeof(Overlapped) == 3 * size + 8
    assert (Overlapped.Offset.offset, Overlapped.OffsetHigh.offset, Overlapped.hEvent.offset) == (
        2 * size,
        2 * size + 4,
        2 * size + 8,
    )


def test_several_threads_read_one_file_at_once() -> None:
    kernel = OwnKernel(bytes(range(256)) * 16 * 64)
    file = UnbufferedFile(PATH, kernel)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: read(file, i * BLOCK, BLOCK), range(64)))
    assert b"".join(got) == kernel.content
    assert kernel.most_at_once > 1
    assert len(kernel.open) <= 9  # the file, and an event for each thread
    file.close()
    assert not kernel.open


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("CreateFileW", NOT_FOUND),
        ("CreateFileW", DENIED),
        ("GetFileSizeEx", DENIED),
        ("CreateEventW", DENIED),
        ("ReadFile", INVALID_PARAMETER),  # sectors larger than our blocks
        ("GetOverlappedResult", INVALID_PARAMETER),
    ],
)
def test_what_cannot_be_opened_so_is_left_to_the_usual_way(function: str, code: int) -> None:
    kernel = OwnKernel()
    kernel.fails[function] = code
    assert open_unbuffered(PATH, kernel) is None
    assert not kernel.open


@pytest.mark.parametrize("function", ["ReadFile", "GetOverlappedResult"])
def test_an_error_of_the_disk_is_told_as_others_are(function: str) -> None:
    kernel = OwnKernel()
    file = UnbufferedFile(PATH, kernel)
    kernel.fails[function] = CRC
    with pytest.raises(
        ReadError, match=r"Reading weights\.bin at byte 4096 failed: .+\. Check the disk, then continue"
    ):
        read_exactly(file, PATH, BLOCK, aligned_buffer(BLOCK).data, BLOCK)
    del kernel.fails[function]
    assert read(file, BLOCK, BLOCK) == CONTENT[BLOCK : 2 * BLOCK]
    file.close()


def test_a_file_that_was_cut_short_is_noticed() -> None:
    kernel = OwnKernel()
    file = UnbufferedFile(PATH, kernel)
    kernel.content = CONTENT[: BLOCK + 10]
    with pytest.raises(ReadError, match=r"ends at byte 4106, .* too early"):
        read_exactly(file, PATH, 0, aligned_buffer(3 * BLOCK).data, 3 * BLOCK)
    kernel.content = CONTENT[:BLOCK]
    with pytest.raises(ReadError, match=r"ends at byte 4096, .* too early"):
        read_exactly(file, PATH, BLOCK, aligned_buffer(BLOCK).data, BLOCK)
    file.close()


def test_memory_is_not_left_to_a_read_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = OwnKernel()
    file = UnbufferedFile(PATH, kernel)

    def interrupted() -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "last_error", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(file, 0, BLOCK)
    assert kernel.cancelled == 1
    assert not kernel._under_way
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="other systems")
def test_other_systems_have_no_such_files(tmp_path: Path) -> None:
    assert kernel32() is None
    assert open_unbuffered(tmp_path / "weights.bin") is None


def test_the_file_layer_takes_it_for_direct_reads_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kernel = tmp_path / "weights.bin", OwnKernel()
    path.write_bytes(CONTENT)
    monkeypatch.delattr(file_layer.os, "preadv", raising=False)
    monkeypatch.setattr(windows_files, "kernel32", lambda: kernel)
    for direct in (True, False):
        file = DiskFiles().open(path, direct=direct)
        assert file.direct is direct
        assert isinstance(file, UnbufferedFile) is direct
        file.close()
    kernel.fails["CreateFileW"] = INVALID_PARAMETER
    file = DiskFiles().open(path, direct=True)
    assert not file.direct
    assert file.size == len(CONTENT)
    file.close()
    with pytest.raises(FileNotFoundError):
        DiskFiles().open(tmp_path / "gone.bin", direct=True)


@on_windows
def test_a_real_file_up_to_its_uneven_end(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(CONTENT * 500)
    file = open_unbuffered(path)
    assert file is not None
    with ThreadPoolExecutor(8) as pool:
        blocks = list(pool.map(lambda i: read(file, i * BLOCK, BLOCK), range(-(-file.size // BLOCK) + 1)))
    assert b"".join(blocks) == CONTENT * 500
    path.unlink()  # others may do as they like meanwhile
    file.close()
    kernel = kernel32()
    assert kernel is not None
    with pytest.raises(FileNotFoundError, match=r"weights\.bin"):
        UnbufferedFile(path, kernel)
