"""What a round costs: seconds by purpose, and bytes from disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from engine.decoding.records import DiskUse, Phase
from engine.weights.statistics import WeightStatistics


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """The bill of one round."""

    draft_s: float = 0.0
    verify_s: float = 0.0
    disk_wait_s: float = 0.0
    """Part of the other two."""
    bytes_read: int = 0
    disk: DiskUse = field(default_factory=DiskUse)


class CostMeter:
    """A stopwatch that books each lap on drafting or on verification."""

    def __init__(self, clock: Callable[[], float], reads: Callable[[], WeightStatistics]) -> None:
        """`reads`: the counters of the weights, from any fixed start."""
        self._clock = clock
        self._reads = reads
        self._before = reads()
        self._seconds = {"draft": 0.0, "verify": 0.0}
        self._last = clock()

    def lap(self, purpose: Literal["draft", "verify"]) -> None:
        """The time since the last lap was for `purpose`."""
        now = self._clock()
        self._seconds[purpose] += now - self._last
        self._last = now

    def costs(self) -> RoundCosts:
        """All laps so far."""
        spent = self._reads().since(self._before)
        disk = DiskUse(
            spent.read_s, spent.hits, spent.misses, spent.expert_hits, spent.expert_misses, spent.memory_bytes
        )
        return RoundCosts(self._seconds["draft"], self._seconds["verify"], spent.wait_s, spent.bytes_read, disk)


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a round taught a draft-length policy."""

    phase: Phase
    drafted: int
    """Tokens proposed, and so rows verified less one."""
    tested: int
    """Of these, judged. A stop inside an accepted run is no refusal: then tested and accepted are equal."""
    accepted: int
    draft_s: float
    verify_s: float
