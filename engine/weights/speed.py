"""How fast a disk delivers, and with how many reads at once: a short, bounded measurement."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.cancel import CancelToken
from engine.errors import ReadError
from engine.weights.buffers import aligned_buffer
from engine.weights.file_layer import DiskFiles, FileLayer, OpenFile, read_error
from engine.weights.ranges import BLOCK
from engine.weights.reader import CHUNK

DEPTHS = (4, 8, 16)
"""One or two reads at a time never keep a disk busy: it waits while the next one is prepared."""
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
    """Read places all over a file with 4, 8 and 16 requests at once; the smallest depth that is near the best wins.

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
        places = _places(file.size // chunk)
        trial = _Trial(file, path, chunk, seconds / len(depths), most_bytes // len(depths), cancel)
        results = [trial.run(depth, places) for depth in depths]
    finally:
        file.close()
    best = max(result.bytes_per_s for result in results)
    return next(result for result in results if result.bytes_per_s * _ENOUGH >= best)


def _places(chunks: int) -> Iterator[int]:
    """Numbers of chunks, all over the file and each once before any comes again."""
    step = next(s for s in range(max(1, chunks * 5 // 8), 2 * chunks + 2) if _coprime(s, chunks))
    return (i * step % chunks for i in itertools.count())


def _coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, a % b
    return a == 1


@dataclass(frozen=True, slots=True)
class _Trial:
    """Reading for a while with one depth."""

    file: OpenFile
    path: Path
    chunk: int
    seconds: float
    most_bytes: int
    cancel: CancelToken | None

    def run(self, depth: int, places: Iterator[int]) -> ReadSpeed:
        offsets = iter([next(places) * self.chunk for _ in range(max(depth, self.most_bytes // self.chunk))])
        buffers = [aligned_buffer(self.chunk) for _ in range(depth)]
        for buffer in buffers:
            buffer[::BLOCK] = 0  # the first touch of new memory would be measured otherwise
        begin = time.perf_counter()
        with ThreadPoolExecutor(depth, thread_name_prefix="read-speed") as pool:
            done = sum(pool.map(lambda buffer: self._read(buffer.data, offsets, begin), buffers))
        elapsed = max(time.perf_counter() - begin, 1e-9)
        return ReadSpeed(done / elapsed, depth, self.file.direct, done, elapsed)

    def _read(self, buffer: memoryview, offsets: Iterator[int], begin: float) -> int:
        """One thread: chunk after chunk, at least one, until time or offsets run out. Returns bytes read."""
        done = 0
        for offset in offsets:  # list iterators may be shared between threads
            if self.cancel is not None:
                self.cancel.check()
            try:
                done += self.file.read_at(offset, buffer)
            except OSError as error:
                raise read_error(self.path, offset, error) from error
            if time.perf_counter() - begin >= self.seconds:
                break
        return done
