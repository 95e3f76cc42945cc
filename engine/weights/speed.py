"""How fast a disk delivers, and with how many reads at once: a short, bounded measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.cancel import CancelToken
from engine.errors import ReadError
from engine.weights.buffers import aligned_buffer
from engine.weights.file_layer import DiskFiles, FileLayer, OpenFile, read_error
from engine.weights.ranges import BLOCK
from engine.weights.reader import CHUNK

DEPTHS = (1, 2, 4, 8)
_ENOUGH = 1.1
"""A greater depth must be this much faster to be worth its threads."""


@dataclass(frozen=True, slots=True)
class ReadSpeed:
    """The result: bytes per second with `depth` reads at once."""

    bytes_per_s: float
    depth: int
    direct: bool
    """Measured past the page cache; otherwise the figure may be the memory's, not the disk's."""
    bytes_read: int
    seconds: float


def measure_read_speed(
    path: Path,
    *,
    seconds: float = 0.4,
    most_bytes: int = 512 * 1024 * 1024,
    depths: tuple[int, ...] = DEPTHS,
    files: FileLayer | None = None,
    cancel: CancelToken | None = None,
) -> ReadSpeed:
    """Read places of a file with 1, 2, 4, 8 requests at once; the smallest depth that is near the best wins.

    Takes about `seconds` and reads at most `most_bytes` in all, in the request size that the weights are read with.

    Raises:
        ReadError: the file cannot be read, or is empty.
        Cancelled.
    """
    try:
        file = (files or DiskFiles()).open(path, direct=True)
    except OSError as error:
        raise read_error(path, 0, error) from error
    try:
        chunk = min(CHUNK, file.size // BLOCK * BLOCK)
        if chunk == 0:
            raise ReadError(f"{path.name} has {file.size} bytes, too few to measure the speed of its disk ({path}).")
        results = _measure_depths(
            file,
            path,
            chunk=chunk,
            seconds=seconds / len(depths),
            most_bytes=most_bytes // len(depths),
            depths=depths,
            cancel=cancel,
        )
    finally:
        file.close()
    best = max(result.bytes_per_s for result in results)
    return next(result for result in results if result.bytes_per_s * _ENOUGH >= best)


def _measure_depths(
    file: OpenFile,
    path: Path,
    *,
    chunk: int,
    seconds: float,
    most_bytes: int,
    depths: tuple[int, ...],
    cancel: CancelToken | None,
) -> list[ReadSpeed]:
    results = []
    place = 0
    for depth in depths:
        stride = max(1, file.size // chunk)
        buffers = [aligned_buffer(chunk) for _ in range(depth)]
        for buffer in buffers:
            buffer[::BLOCK] = 0  # first touch of new memory would be measured otherwise
        begin = time.perf_counter()
        done = 0
        with ThreadPoolExecutor(depth, thread_name_prefix="read-speed") as pool:
            while done == 0 or (time.perf_counter() - begin < seconds and done < most_bytes):
                if cancel is not None:
                    cancel.check()
                offsets = [(place + i) % stride * chunk for i in range(depth)]
                place += depth
                reads = [_read_one(file, path, o, b.data) for o, b in zip(offsets, buffers, strict=True)]
                done += sum(pool.map(lambda read: read(), reads))
        elapsed = time.perf_counter() - begin
        results.append(ReadSpeed(done / max(elapsed, 1e-9), depth, file.direct, done, elapsed))
    return results


def _read_one(file: OpenFile, path: Path, offset: int, buffer: memoryview) -> Callable[[], int]:
    def read() -> int:
        try:
            return file.read_at(offset, buffer)
        except OSError as error:
            raise read_error(path, offset, error) from error

    return read
