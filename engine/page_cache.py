"""The system's page cache: throw a file out, and see how much of it is there; for honest measurements."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path


def drop(path: Path) -> None:
    """Ask the system to forget a file's pages; does nothing where it cannot be asked."""
    if not hasattr(os, "posix_fadvise"):
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)  # a page that is not written yet cannot be dropped
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def cached_share(path: Path) -> float | None:
    """Share of a file's pages that are in the page cache (mincore); None where the system does not tell."""
    size = path.stat().st_size
    if not sys.platform.startswith("linux") or size == 0:
        return None
    pages = -(-size // mmap.PAGESIZE)
    there = (ctypes.c_ubyte * pages)()
    libc = ctypes.CDLL(None, use_errno=True)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as m,
    ):
        start = ctypes.c_char.from_buffer(m)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), there)
        del start  # the map cannot be closed while somebody points into it
    return None if failed else sum(page & 1 for page in there) / pages
