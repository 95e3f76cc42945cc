"""I/O threads: they read extents into buffers, what is waited for before what is read ahead.

One lock guards the queue and everything that its users keep about their requests, so that "is it in memory, on its way,
or on disk?" has one answer at any moment. Methods marked *locked* are called with `lock` held.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from engine.cancel import CancelToken
from engine.errors import Cancelled, ReadError
from engine.weights.buffers import ByteArray
from engine.weights.file_layer import FileLayer, read_exactly
from engine.weights.handles import Handles
from engine.weights.ranges import Extent, Layout

CHUNK = 4 * 1024 * 1024
"""Bytes per read: large enough for full disk speed, small enough to stop between two within a fraction of a second."""
_POLL = 0.1  # seconds between looks at the cancel token
_STALL_AFTER = 2.0  # seconds without a byte before a person is told
_REPORT_EVERY = 1.0  # seconds


class Priority(IntEnum):
    """What is read first."""

    DEMAND = 0
    """Somebody waits."""
    AHEAD = 1
    """Somebody will wait, in execution order."""
    IDLE = 2
    """A guess; only when nothing else is to do."""


@dataclass(frozen=True, slots=True)
class Stall:
    """The disk has not delivered a byte for a while."""

    what: str
    """The unit that is waited for."""
    file: str
    offset: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Chunk:
    file: Path
    offset: int
    length: int
    needed: int
    position: int


class Request:
    """Some extents on their way into a buffer."""

    def __init__(self, what: str, layout: Layout, buffer: ByteArray, priority: Priority) -> None:
        self.what = what
        self.buffer = buffer
        self.priority = priority
        self.error: ReadError | None = None
        self.dropped = False
        self.in_flight = 0
        self.chunks = deque(chunk for extent in layout.extents for chunk in _chunks(extent))
        self.finished: Callable[[Request], None] | None = None

    @property
    def done(self) -> bool:
        return not self.chunks and self.in_flight == 0


def _chunks(extent: Extent) -> list[_Chunk]:
    return [
        _Chunk(
            extent.file,
            extent.offset + begin,
            min(CHUNK, extent.nbytes - begin),
            min(CHUNK, extent.needed - begin),
            extent.position + begin,
        )
        for begin in range(0, extent.needed, CHUNK)
    ]


class Reader:
    """A few threads, one queue per priority. `close` ends the threads."""

    def __init__(
        self,
        files: FileLayer,
        *,
        direct: bool,
        threads: int = 4,
        on_stall: Callable[[Stall], None] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.bytes_read = 0
        self.wait_seconds = 0.0
        self.on_stall = on_stall
        self.on_idle: Callable[[], None] | None = None
        """Called by an I/O thread, locked, when there is nothing left to read."""
        self._work = threading.Condition(self.lock)
        self._progress = threading.Condition(self.lock)
        self._queues: tuple[deque[Request], ...] = tuple(deque() for _ in Priority)
        self._handles = Handles(files, direct=direct)
        self._closing = False
        self._reading: dict[int, tuple[_Chunk, float]] = {}  # thread → what it reads, since when
        self._busy_since = 0.0
        self._busy_seconds = 0.0
        self._threads = [threading.Thread(target=self._run, name=f"weights-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def busy_seconds(self) -> float:
        """Time during which at least one read was under way (locked)."""
        return self._busy_seconds + (time.perf_counter() - self._busy_since if self._reading else 0.0)

    @property
    def idle(self) -> bool:
        """Nothing is being read or waits to be (locked)."""
        return not self._reading and not any(self._queues)

    def submit(
        self,
        what: str,
        layout: Layout,
        buffer: ByteArray,
        priority: Priority,
        finished: Callable[[Request], None] | None = None,
    ) -> Request:
        """Start reading `layout` into `buffer` (locked). `finished` is called by an I/O thread, locked.

        Raises ValueError if the buffer is too small.
        """
        if len(buffer) < layout.nbytes:
            raise ValueError(f"{what} needs a buffer of {layout.nbytes} bytes, not {len(buffer)}.")
        request = Request(what, layout, buffer, priority)
        request.finished = finished
        if request.chunks:
            self._queues[priority].append(request)
            self._work.notify_all()
        return request

    def promote(self, request: Request) -> None:
        """Somebody waits for it now (locked)."""
        if request.priority is not Priority.DEMAND:
            if request in self._queues[request.priority]:
                self._queues[request.priority].remove(request)
                self._queues[Priority.DEMAND].append(request)
            request.priority = Priority.DEMAND

    def drop(self, request: Request) -> None:
        """Nobody wants it any more (locked). Its buffer is in use until the request is done."""
        request.dropped = True
        request.chunks.clear()
        if request in self._queues[request.priority]:
            self._queues[request.priority].remove(request)
        if request.done:
            self._finish(request)

    def wait(self, what: str, ready: Callable[[], bool], cancel: CancelToken | None) -> None:
        """Sleep until `ready` (locked; others run meanwhile). Raises Cancelled."""
        if ready():
            return
        begin = last_byte = last_report = time.perf_counter()
        seen = self.bytes_read
        try:
            while not ready():
                if cancel is not None:
                    cancel.check()
                if self._closing:
                    raise Cancelled  # nobody will read it any more
                self._progress.wait(_POLL)
                now = time.perf_counter()
                if self.bytes_read != seen:
                    seen, last_byte = self.bytes_read, now
                elif now - last_byte > _STALL_AFTER and now - last_report > _REPORT_EVERY:
                    last_report = now
                    self._report_stall(what, now - last_byte)
        finally:
            self.wait_seconds += time.perf_counter() - begin

    def notify(self) -> None:
        """Something that a `wait` may look at has changed (locked)."""
        self._progress.notify_all()

    def close(self, patience: float = 2.0) -> None:
        """End the threads. One that is stuck in a read ends by itself when the disk answers."""
        with self.lock:
            self._closing = True
            self.on_idle = None
            for queue in self._queues:
                queue.clear()
            self._work.notify_all()
            self._progress.notify_all()
        end = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._handles.close()

    def _report_stall(self, what: str, seconds: float) -> None:
        if self.on_stall is not None and self._reading:
            chunk, _ = min(self._reading.values(), key=lambda item: item[1])
            self.on_stall(Stall(what, chunk.file.name, chunk.offset, seconds))

    def _next(self) -> tuple[Request, _Chunk] | None:
        """The next chunk to read (locked)."""
        for queue in self._queues:
            if queue:
                request = queue[0]
                chunk = request.chunks.popleft()
                if not request.chunks:
                    queue.popleft()
                return request, chunk
        return None

    def _run(self) -> None:
        """An I/O thread: chunk after chunk until the reader closes."""
        while (job := self._take()) is not None:
            request, chunk = job
            error = self._read(request, chunk)
            with self.lock:
                del self._reading[threading.get_ident()]
                if not self._reading:
                    self._busy_seconds += time.perf_counter() - self._busy_since
                self._after(request, chunk, error)

    def _take(self) -> tuple[Request, _Chunk] | None:
        """Wait for work and mark it as being read; None once the reader closes."""
        with self.lock:
            job = self._next()
            while job is None:
                if self._closing:
                    return None
                self._work.wait()
                job = self._next()
            request, chunk = job
            request.in_flight += 1
            now = time.perf_counter()
            if not self._reading:
                self._busy_since = now
            self._reading[threading.get_ident()] = (chunk, now)
            return job

    def _read(self, request: Request, chunk: _Chunk) -> ReadError | None:
        try:
            handle = self._handles.borrow(chunk.file)
        except ReadError as error:
            return error
        broken = True
        try:
            target = request.buffer.data[chunk.position : chunk.position + chunk.length]
            read_exactly(handle.file, chunk.file, chunk.offset, target, chunk.needed)
            broken = False
        except ReadError as error:
            return error
        except Exception as error:  # whatever it is, somebody waits for this thread's answer
            return ReadError(f"Reading {chunk.file.name} at byte {chunk.offset} failed: {error!r} ({chunk.file}).")
        finally:
            self._handles.give_back(chunk.file, handle, broken=broken)
        return None

    def _after(self, request: Request, chunk: _Chunk, error: ReadError | None) -> None:
        """Account for a chunk that was read (locked)."""
        request.in_flight -= 1
        if error is None:
            self.bytes_read += chunk.length
        elif request.error is None:
            request.error = error
            if request in self._queues[request.priority]:
                self._queues[request.priority].remove(request)
            request.chunks.clear()
        if request.done:
            self._finish(request)
        if self.on_idle is not None and self.idle and not self._closing:
            self.on_idle()
        self._progress.notify_all()

    def _finish(self, request: Request) -> None:
        finished, request.finished = request.finished, None  # who asks for memory must not be kept by its requests
        if finished is not None:
            finished(request)
