"""What a round costs: seconds by purpose, and bytes from disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.decoding.records import Phase


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """The bill of one round."""

    draft_s: float = 0.0
    verify_s: float = 0.0
    disk_wait_s: float = 0.0
    """Part of the other two."""
    bytes_read: int = 0


class CostMeter:
    """A stopwatch that books each lap on drafting or on verification."""

    def __init__(self, clock: Callable[[], float], reads: Callable[[], tuple[int, float]]) -> None:
        """`reads`: (bytes read from disk, seconds waited for them), both counted from any fixed start."""
        self._clock = clock
        self._reads = reads
        self._bytes, self._waited = reads()
        self._seconds = {"draft": 0.0, "verify": 0.0}
        self._last = clock()

    def lap(self, purpose: Literal["draft", "verify"]) -> None:
        """The time since the last lap was for `purpose`."""
        now = self._clock()
        self._seconds[purpose] += now - self._last
        self._last = now

    def costs(self) -> RoundCosts:
        """All laps so far."""
        total, waited = self._reads()
        return RoundCosts(self._seconds["draft"], self._seconds["verify"], waited - self._waited, total - self._bytes)


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
