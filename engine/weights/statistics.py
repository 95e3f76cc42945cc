"""What the weights have cost so far. Two snapshots, one taken from the other, give the cost of what lies between."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

_MEMORY = ("resident_bytes", "ring_bytes", "cache_bytes")


@dataclass(frozen=True, slots=True)
class WeightStatistics:
    """Counters since the store was opened, and its memory as it is now."""

    bytes_read: int = 0
    wait_s: float = 0.0
    """Time in which a computation waited for the disk."""
    read_s: float = 0.0
    """Time in which at least one read was under way."""
    hits: int = 0
    """Units that were in memory when they were asked for."""
    misses: int = 0
    expert_hits: int = 0
    expert_misses: int = 0
    experts_prefetched: int = 0
    """Experts read on a guess."""
    prefetch_hits: int = 0
    """Those of them that were used."""
    resident_bytes: int = 0
    """Always in memory: resident units, small tensors, embedding rows being read."""
    ring_bytes: int = 0
    cache_bytes: int = 0
    """Of the expert cache."""

    @property
    def memory_bytes(self) -> int:
        """All memory that the weights occupy."""
        return self.resident_bytes + self.ring_bytes + self.cache_bytes

    @property
    def overlap(self) -> float:
        """Share of the reading time during which nobody waited for it; 1 where nothing was read."""
        return max(0.0, 1 - self.wait_s / self.read_s) if self.read_s > 0 else 1.0

    @property
    def read_speed(self) -> float:
        """Bytes per second while reading; 0 where nothing was read."""
        return self.bytes_read / self.read_s if self.read_s > 0 else 0.0

    def plus(self, other: WeightStatistics) -> WeightStatistics:
        """Counters of both; the memory is that of `other`."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name not in _MEMORY}
        return replace(other, **sums)

    def since(self, earlier: WeightStatistics) -> WeightStatistics:
        """Counters less those of `earlier`; the memory is this snapshot's."""
        rest = {f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self) if f.name not in _MEMORY}
        return replace(self, **rest)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON, the derived ones too."""
        return asdict(self) | {"overlap": self.overlap, "memory_bytes": self.memory_bytes}
