"""Routed experts that are not resident: read when a router picks them, kept as long as they are worth more than others.

The cache is a slab of equal slots. What a pass still needs is never evicted for what it needs later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.cancel import CancelToken
from engine.errors import OptionError
from engine.kernels.matrix import Matrix
from engine.weights.buffers import ByteArray, aligned_buffer
from engine.weights.ranges import Layout, lay_out
from engine.weights.reader import Priority, Reader, Request
from engine.weights.units import Part
from engine.weights.vectors import FloatArray
from engine.weights.views import matrices
from engine.weights.worth import Key, Worth

Parts = Mapping[str, Mapping[int, Part]]
"""Routed experts by unit and number."""


@dataclass(slots=True, eq=False)
class _Entry:
    slot: int
    request: Request
    matrices: Mapping[str, Matrix]
    """Views of the slot; they mean something once the request is done."""
    pins: int = 0
    guessed: bool = False
    """Read by the prefetcher, and not used yet."""

    @property
    def usable(self) -> bool:
        """In memory or on its way."""
        return self.request.error is None and not self.request.dropped


class ExpertCache:
    """Slots for experts. All methods are called with the reader's lock held."""

    def __init__(self, reader: Reader, parts: Parts, nbytes: int, vectors: Mapping[str, FloatArray]) -> None:
        self.hits = 0
        self.misses = 0
        self.guesses = 0
        self.good_guesses = 0
        self.bad_guesses = 0
        self.last_used: dict[str, tuple[int, ...]] = {}
        """By unit: the experts of its last pass."""
        self._reader = reader
        self._parts = parts
        self._vectors = vectors
        self._slot_bytes = slot_bytes(parts)
        self.slots = nbytes // self._slot_bytes
        self._slab = aligned_buffer(self.slots * self._slot_bytes)
        self._free = list(range(self.slots))
        self._entries: dict[Key, _Entry] = {}
        self._worth = Worth()
        self._needed: set[Key] = set()

    @property
    def nbytes(self) -> int:
        return len(self._slab)

    @property
    def guessed_bytes(self) -> int:
        """Bytes of experts that were read on a guess and not used yet."""
        return sum(self._slot_bytes for entry in self._entries.values() if entry.guessed)

    def begin_pass(self, unit: str, experts: Sequence[int]) -> None:
        """The router of `unit` has picked `experts`; they will be asked for in this order."""
        self._worth.use(unit, experts)
        self.last_used[unit] = tuple(experts)
        self._needed = {(unit, expert) for expert in experts}

    def end_pass(self, unit: str) -> None:
        """What is still to be read for `unit` is not needed any more."""
        self._needed = {key for key in self._needed if key[0] != unit}
        for key, entry in self._entries.items():
            if key[0] == unit and not entry.pins and not entry.request.done and not entry.guessed:
                self._reader.drop(entry.request)

    def cached(self, key: Key) -> bool:
        """In memory or on its way."""
        entry = self._entries.get(key)
        return entry is not None and entry.usable

    def start(self, key: Key, priority: Priority) -> bool:
        """Begin to read an expert unless it is there; false if no slot can be had for it now."""
        entry = self._entries.get(key)
        if entry is not None and entry.usable:
            return True
        if entry is not None and not entry.request.done:
            return False  # given up a moment ago, but a read still writes into its slot
        if entry is not None:
            self._remove(key)
        slot = self._slot(key, priority)
        if slot is None:
            return False
        part = self._parts[key[0]][key[1]]
        layout, buffer = layout_of(part), self._bytes(slot)
        request = self._reader.submit(name_of(key), layout, buffer, priority)
        views = matrices(part.tensors, layout.places, buffer, self._vectors)
        self._entries[key] = _Entry(slot, request, views, guessed=priority is Priority.IDLE)
        self._worth.offer(key)
        self.guesses += priority is Priority.IDLE
        return True

    def pin(self, key: Key, cancel: CancelToken | None) -> Mapping[str, Matrix]:
        """Wait for an expert and keep it until `unpin`.

        Raises:
            ReadError: it cannot be read; the next call tries again.
            Cancelled.
        """
        present = self.cached(key) and self._entries[key].request.done
        self.hits += present
        self.misses += not present
        self._reader.wait(name_of(key), lambda: self.start(key, Priority.DEMAND), cancel)
        entry = self._entries[key]
        self.good_guesses += entry.guessed
        entry.guessed = False
        self._reader.promote(entry.request)
        entry.pins += 1
        try:
            self._reader.wait(name_of(key), lambda: entry.request.done, cancel)
            if entry.request.error is not None:
                raise entry.request.error
        except BaseException:
            entry.pins -= 1
            raise
        self._needed.discard(key)
        return entry.matrices

    def unpin(self, key: Key) -> None:
        """The expert is not in use any more."""
        self._entries[key].pins -= 1
        self._reader.notify()

    def _slot(self, key: Key, priority: Priority) -> int | None:
        if self._free:
            return self._free.pop()
        if self._worth.offers > 4 * self.slots:
            self._worth.forget(self._entries.__contains__)
        victim = self._worth.least(lambda k: self._idle(k) and k not in self._needed)
        if victim is None and priority is Priority.DEMAND:
            victim = self._worth.least(self._idle)
        if victim is None:
            self._check_possible(priority)
            return None
        if priority is Priority.IDLE and self._worth.of(victim) >= self._worth.of(key):
            return None
        self._remove(victim)
        return self._free.pop()

    def _idle(self, key: Key) -> bool:
        entry = self._entries.get(key)
        return entry is not None and not entry.pins and entry.request.done

    def _check_possible(self, priority: Priority) -> None:
        if priority is Priority.DEMAND and all(entry.pins for entry in self._entries.values()):
            raise OptionError(
                f"The expert cache has {self.slots} slots and all are in use; raise the memory budget by"
                f" {self._slot_bytes} bytes or more."
            )

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key)
        self.bad_guesses += entry.guessed
        self._free.append(entry.slot)

    def _bytes(self, slot: int) -> ByteArray:
        return self._slab[slot * self._slot_bytes : (slot + 1) * self._slot_bytes]


def layout_of(part: Part) -> Layout:
    """How an expert lies in its slot."""
    return lay_out([tensor.range for tensor in part.tensors])


def slot_bytes(parts: Parts) -> int:
    """Bytes of a slot: those of the largest expert."""
    return max((layout_of(part).nbytes for experts in parts.values() for part in experts.values()), default=0)


def name_of(key: Key) -> str:
    return f"expert {key[1]} of {key[0]}"
