"""Which units stay in memory under a byte budget, and how the rest of the budget is shared out.

Keeping a unit saves (uses per round × its bytes) of reading and costs its bytes, so units with the most uses stay
first. Of equals, the ones that stay are spread evenly over the pass, so that the disk always has something to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from engine.errors import OptionError

RING_BLOCKS = 2
"""The ring holds at least this many of the largest streamed unit: one in use, one on its way."""
ROOMY_BLOCKS = 3
"""With a third, the disk goes on while a unit is used that takes longer than the next one's reading."""
_THIRD = 1.25
"""What the third block is worth against a unit of its size that is used once a round: it was measured to bring some
hundredths more than such a unit, and units of nearly the same size are not to count for more."""
CACHE_SLOTS = 2
"""Least number of experts in the cache: one in use, one on its way."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What there is to be placed, in bytes of memory (laid out for direct reads)."""

    units: Mapping[str, int]
    """In execution order, without experts."""
    uses: Mapping[str, float]
    experts: int = 0
    """All routed experts, as they lie when all are resident."""
    expert_slot: int = 0
    expert_count: int = 0
    tables: int = 0
    """Embedding tables that are no head."""
    vectors: int = 0
    scratch: int = 0
    """For reading embedding rows."""

    @property
    def everything(self) -> int:
        return sum(self.units.values()) + self.experts + self.tables + self.vectors


@dataclass(frozen=True, slots=True)
class Allocation:
    """How the budget is spent."""

    resident: tuple[str, ...]
    streamed: tuple[str, ...]
    complete: bool
    """Everything is resident, experts and embedding table too."""
    resident_bytes: int
    """Resident units, small tensors, embedding rows (or the table)."""
    ring_bytes: int
    cache_bytes: int

    @property
    def total(self) -> int:
        return self.resident_bytes + self.ring_bytes + self.cache_bytes


def minimum_budget(sizes: Sizes) -> int:
    """The smallest budget that works."""
    rings = [
        RING_BLOCKS * largest + sum(size for size in sizes.units.values() if size > largest)
        for largest in {0, *sizes.units.values()}
    ]
    return min(_fixed(sizes) + min(rings), sizes.everything)


def allocate(sizes: Sizes, budget: int | None) -> Allocation:
    """The allocation that reads the fewest bytes per round within `budget` bytes; None keeps everything. A third block
    in the ring counts somewhat more than a unit of its size that is used once a round.

    Raises:
        OptionError: the budget is below `minimum_budget`.
    """
    names = tuple(sizes.units)
    if budget is None or sizes.everything <= budget:
        return Allocation(names, (), True, sizes.everything, 0, 0)
    best: tuple[float, Allocation] | None = None
    for largest in sorted({0, *sizes.units.values()}):
        for blocks in (ROOMY_BLOCKS, RING_BLOCKS):
            found = _with_ring_for(sizes, budget, largest, blocks)
            if found is not None and (best is None or worth(sizes, found) > best[0]):
                best = (worth(sizes, found), found)
    if best is None:
        raise OptionError(
            f"The memory budget is {amount(budget)}, but this model needs at least {amount(minimum_budget(sizes))}."
        )
    return best[1]


def worth(sizes: Sizes, allocation: Allocation) -> float:
    """Bytes that an allocation saves reading in a round, and what a third block in the ring is worth beside them."""
    saved = sum(sizes.units[name] * sizes.uses[name] for name in allocation.resident)
    read = sum(sizes.units[name] * sizes.uses[name] for name in allocation.streamed)
    block = max((sizes.units[name] for name in allocation.streamed), default=0)
    return saved + (min(_THIRD * block, read) if allocation.ring_bytes >= ROOMY_BLOCKS * block else 0.0)


def amount(nbytes: int) -> str:
    """Bytes for people, rounded up: a budget of what is said here is enough."""
    if nbytes < 100_000:
        return f"{nbytes:,} byte{'s' * (nbytes != 1)}"
    return f"{math.ceil(nbytes / 100_000) / 10:,.1f} MB"


def _fixed(sizes: Sizes) -> int:
    return sizes.vectors + sizes.scratch + min(CACHE_SLOTS, sizes.expert_count) * sizes.expert_slot


def _with_ring_for(sizes: Sizes, budget: int, largest: int, blocks: int) -> Allocation | None:
    """The best allocation in which no streamed unit is larger than `largest`; None if it does not fit."""
    ring = blocks * largest
    left = budget - _fixed(sizes) - ring
    resident = {name for name, size in sizes.units.items() if size > largest}
    left -= sum(sizes.units[name] for name in resident)
    if left < 0:
        return None
    for name in _by_worth(sizes, resident, left):
        if name not in resident and sizes.units[name] <= left:
            resident.add(name)
            left -= sizes.units[name]
    streamed = tuple(name for name in sizes.units if name not in resident)
    kept = tuple(name for name in sizes.units if name in resident)
    if not streamed:
        left, ring = left + ring, 0
    cache = 0
    if sizes.expert_count:
        slots = min(sizes.expert_count, min(CACHE_SLOTS, sizes.expert_count) + left // sizes.expert_slot)
        left -= (slots - min(CACHE_SLOTS, sizes.expert_count)) * sizes.expert_slot
        cache = slots * sizes.expert_slot
    elif streamed:
        # What is left holds more of what runs ahead; beyond all that is streamed there is nothing to hold.
        ring += min(left, max(0, sum(sizes.units[name] for name in streamed) - ring)) // 4096 * 4096
    resident_bytes = sum(sizes.units[name] for name in kept) + sizes.vectors + sizes.scratch
    return Allocation(kept, streamed, False, resident_bytes, ring, cache)


def _by_worth(sizes: Sizes, resident: Set[str], nbytes: int) -> Sequence[str]:
    """Units in the order in which `nbytes` are given out: most uses first; of equals that do not all fit, first as many
    as do when they are spread evenly over the pass, so that the disk works while each is used."""
    order: list[str] = []
    for uses in sorted(set(sizes.uses.values()), reverse=True):
        equals = [
            n for n, size in sizes.units.items() if sizes.uses[n] == uses and n not in resident and size <= nbytes
        ]
        first = _spread(equals, sizes.units, nbytes)
        nbytes -= sum(sizes.units[name] for name in first)
        order += [*first, *(name for name in equals if name not in first)]
    return order


def _spread(names: Sequence[str], sizes: Mapping[str, int], nbytes: int) -> list[str]:
    """The most of `names` that fit into so many bytes when their places are as far apart as can be."""
    count = len(names)
    while count:
        chosen = [names[(2 * i + 1) * len(names) // (2 * count)] for i in range(count)]
        if sum(sizes[name] for name in chosen) <= nbytes:
            return chosen
        count -= 1
    return []
