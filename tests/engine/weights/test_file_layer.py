"""Positional reads past the page cache, and what happens where that is not to be had."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from engine.weights import file_layer
from engine.weights.buffers import aligned_buffer
from engine.weights.file_layer import DiskFiles, read_exactly
from engine.weights.ranges import BLOCK

CONTENT = bytes(range(256)) * 80  # five blocks
needs_direct = pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="Linux")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "weights.bin"
    file.write_bytes(CONTENT)
    return file


def read(path: Path, *, direct: bool, offset: int = BLOCK, nbytes: int = 2 * BLOCK) -> bytes:
    file = DiskFiles().open(path, direct=direct)
    try:
        assert file.size == len(CONTENT)
        buffer = aligned_buffer(nbytes)
        read_exactly(file, path, offset, buffer.data, nbytes)
        return buffer.tobytes()
    finally:
        file.close()


@pytest.mark.parametrize("direct", [True, False])
def test_reads_at_a_place(path: Path, direct: bool) -> None:
    assert read(path, direct=direct) == CONTENT[BLOCK : 3 * BLOCK]


@needs_direct
def test_a_file_system_that_refuses_direct_access_at_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(name: Any, flags: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(name, flags)

    monkeypatch.setattr(file_layer.os, "open", refuse)
    assert read(path, direct=True) == CONTENT[BLOCK : 3 * BLOCK]


@needs_direct
def test_a_file_system_that_refuses_direct_access_at_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = os.preadv, []

    def refuse(fd: int, buffers: Any, offset: int) -> int:
        if not refused:
            refused.append(offset)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(fd, buffers, offset)

    monkeypatch.setattr(file_layer.os, "preadv", refuse)
    assert read(path, direct=True) == CONTENT[BLOCK : 3 * BLOCK]
    assert refused == [BLOCK]


@needs_direct
def test_other_errors_are_not_taken_for_a_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: Any, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(file_layer.os, "open", refuse)
    with pytest.raises(PermissionError):
        DiskFiles().open(path, direct=True)


@needs_direct
@pytest.mark.parametrize("wanted", [True, False])
def test_without_direct_access_the_page_cache_is_asked_to_forget(
    path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    forgotten: list[tuple[int, int]] = []
    monkeypatch.setattr(file_layer.os, "O_DIRECT", 0)
    monkeypatch.setattr(
        file_layer.os, "posix_fadvise", lambda fd, offset, size, advice: forgotten.append((offset, size))
    )
    read(path, direct=wanted)
    assert forgotten == ([(BLOCK, 2 * BLOCK)] if wanted else [])


def test_without_positional_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(file_layer.os, "preadv")
    assert read(path, direct=True) == CONTENT[BLOCK : 3 * BLOCK]


def test_reads_that_come_in_pieces(path: Path) -> None:
    class Slow:
        size, direct = len(CONTENT), False

        def read_at(self, offset: int, buffer: memoryview) -> int:
            piece = CONTENT[offset : offset + min(7, len(buffer))]
            buffer[: len(piece)] = piece
            return len(piece)

        def close(self) -> None: ...

    buffer = bytearray(100)
    read_exactly(Slow(), path, 10, memoryview(buffer), 90)
    assert buffer[:90] == CONTENT[10:100]
