"""Streamed units pass through here: read ahead in execution order into one arena, used, and overwritten.

A block stays until its space is needed, and what is needed latest goes first (Belady's rule, with the last pass as the
forecast). So the units of a drafting loop stay while it runs, and a layer's block makes room as soon as it was used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.cancel import CancelToken
from engine.errors import OptionError
from engine.weights.buffers import Arena, ByteArray
from engine.weights.order import ExecutionOrder
from engine.weights.ranges import BLOCK, Layout
from engine.weights.reader import Priority, Reader, Request


@dataclass(slots=True, eq=False)
class _Block:
    position: int
    nbytes: int
    request: Request
    holders: int = 0

    @property
    def idle(self) -> bool:
        """In memory, and in nobody's hands."""
        return self.request.done and not self.holders


class Ring:
    """Blocks of an arena, by unit. All methods but `acquire` are called with the reader's lock held."""

    def __init__(self, reader: Reader, layouts: Mapping[str, Layout], nbytes: int, order: ExecutionOrder) -> None:
        self.hits = 0
        self.misses = 0
        self._reader = reader
        self._layouts = layouts
        self._order = order
        self._arena = Arena(nbytes // BLOCK * BLOCK)  # its end is where blocks are put, too
        self._blocks: dict[str, _Block] = {}

    @property
    def nbytes(self) -> int:
        return self._arena.nbytes

    def state(self, unit: str) -> str:
        """`ring`, `reading` or `disk`."""
        block = self._blocks.get(unit)
        if block is None or block.request.error is not None or block.request.dropped:
            return "disk"
        return "ring" if block.request.done else "reading"

    def acquire(self, unit: str, cancel: CancelToken | None) -> ByteArray:
        """The unit's bytes, laid out as its layout says; they stay until `release`. Waits for the disk if it must.

        Raises:
            ReadError: the unit cannot be read; the next call tries again.
            Cancelled: the person asked to stop; what is being read goes on and will be there next time.
        """
        with self._reader.lock:
            block = self._current(unit)
            if block is not None and block.request.done:
                self.hits += 1
            else:
                self.misses += 1
                block = self._demand(unit, block, cancel)
            block.holders += 1
            self.run_ahead()
            return self._arena.view(block.position, block.nbytes)

    def release(self, unit: str) -> None:
        """Undo one `acquire`."""
        self._blocks[unit].holders -= 1
        self.run_ahead()
        self._reader.notify()

    def close(self) -> None:
        """Let go of all memory, as soon as no read writes into it and no view of it is left."""
        for block in self._blocks.values():
            self._reader.drop(block.request)
        self._blocks.clear()

    def run_ahead(self) -> None:
        """Start reading the coming units, as far as there is space for them."""
        distance = self._distances()
        for unit in sorted(distance, key=lambda name: distance[name]):
            if unit in self._blocks:
                continue  # there, on its way, or failed: a failed one is tried again when it is asked for
            if not self._start(unit, Priority.AHEAD):
                break

    def _current(self, unit: str) -> _Block | None:
        """The unit's block, unless its last read failed or was given up."""
        block = self._blocks.get(unit)
        if block is not None and block.request.done and (block.request.error is not None or block.request.dropped):
            self._free(unit)
            return None
        return block

    def _demand(self, unit: str, block: _Block | None, cancel: CancelToken | None) -> _Block:
        """Wait for a unit that is not there yet."""
        if block is None:
            block = self._make_room_and_start(unit, cancel)
        else:
            self._reader.promote(block.request)
        self.run_ahead()
        request = block.request
        block.holders += 1  # nobody may evict it between the last byte and the wake-up
        try:
            self._reader.wait(unit, lambda: request.done, cancel)
        finally:
            block.holders -= 1
        if request.error is not None:
            raise request.error
        return block

    def _make_room_and_start(self, unit: str, cancel: CancelToken | None) -> _Block:
        """Begin to read `unit` at once: if need be in place of others that are not in use."""
        while True:
            if self._start(unit, Priority.DEMAND):
                return self._blocks[unit]
            others = [b for b in self._blocks.values() if not b.holders]
            if not others:
                raise OptionError(
                    f"The memory budget is too small to hold {unit} beside the units in use; give it at least"
                    f" {self._layouts[unit].nbytes + sum(b.nbytes for b in self._blocks.values())} bytes for streaming."
                )
            for other in others:
                if not other.request.done:
                    self._reader.drop(other.request)
            self._reader.wait(unit, lambda o=others: all(b.request.done for b in o), cancel)  # type: ignore[misc]
            for name in [n for n, b in self._blocks.items() if b.request.dropped and b.idle]:
                self._free(name)

    def _start(self, unit: str, priority: Priority) -> bool:
        """Begin to read `unit` if there is space, or idle blocks that are needed later than it; false if not."""
        layout = self._layouts[unit]
        victims: list[str] = []
        if not self._arena.fits(layout.nbytes):
            distance = self._distances()
            # What is waited for may displace anything; what is read ahead, only what is needed later than itself.
            own = -1 if priority is Priority.DEMAND else distance.get(unit, -1)
            far = len(distance) + 1
            idle = [n for n, b in self._blocks.items() if b.idle and distance.get(n, far) > own]
            for name in sorted(idle, key=lambda n: distance.get(n, far), reverse=True):
                victims.append(name)
                blocks = [self._blocks[v] for v in victims]
                if self._arena.fits(layout.nbytes, [(b.position, b.nbytes) for b in blocks]):
                    break
            else:
                return False
        for name in victims:
            self._free(name)
        position = self._arena.take(layout.nbytes)
        assert position is not None  # it fits, as was just found
        buffer = self._arena.view(position, layout.nbytes)
        request = self._reader.submit(unit, layout, buffer, priority, self._finished)
        self._blocks[unit] = _Block(position, layout.nbytes, request)
        return True

    def _distances(self) -> dict[str, int]:
        """How many streamed units are used before each one's next use."""
        coming = [unit for unit in self._order.coming() if unit in self._layouts]
        return {unit: index for index, unit in reversed(list(enumerate(coming)))}

    def _finished(self, request: Request) -> None:
        if request.error is None and not request.dropped:
            self.run_ahead()

    def _free(self, unit: str) -> None:
        block = self._blocks.pop(unit)
        self._arena.give_back(block.position, block.nbytes)
