"""What the inspector's plots show, computed from rounds. No widgets, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inspector.ring import Floats, Ring
from engine import Record, Round, wilson_interval

KEPT_ROUNDS = 2000
SHOWN_ROUNDS = 200
POSITIONS = 16
FEW = 20
"""Below this many tests a share says little, and is shown in grey."""

SourceFilter = Literal["all", "mtp", "ngram"]
Rate = Literal["conditional", "survival"]
_SOURCE_ROW = {"mtp": 0, "ngram": 1}
_DRAFT, _VERIFY, _WAIT, _OFFERED, _ACCEPTED, _EMITTED = range(6)
_PROPOSED, _TESTED, _TAKEN = range(3)


@dataclass(frozen=True, slots=True)
class RoundWindow:
    """The newest rounds, column by column; the arrays are copies."""

    number: Floats
    """1, 2, 3 … since the beginning."""
    draft_ms: Floats
    verify_ms: Floats
    """Verification without what it waited for the disk."""
    wait_ms: Floats
    offered: Floats
    accepted: Floats
    emitted: Floats


@dataclass(frozen=True, slots=True)
class PositionRate:
    """How often the draft at one position (1 is the first of a round) was accepted."""

    position: int
    accepted: int
    tests: int
    """Tests for the conditional rate, proposals for survival."""
    low: float
    high: float
    """95 % interval after Wilson."""

    @property
    def share(self) -> float:
        return self.accepted / self.tests

    @property
    def few(self) -> bool:
        """Too few tests to say much."""
        return self.tests < FEW


@dataclass(frozen=True, slots=True)
class Headline:
    """Everything since the beginning, in four figures; None where there is nothing to divide by."""

    rounds: int
    tokens_per_round: float | None
    acceptance: float | None
    """Accepted of tested drafts."""
    tokens_per_s: float | None
    """Over the time of drafting and verifying."""


class RoundsModel:
    """Counts rounds and keeps the newest ones. `version` grows with every change."""

    def __init__(self, capacity: int = KEPT_ROUNDS) -> None:
        self.version = 0
        self._ring = Ring(capacity, 6)
        self._counts: npt.NDArray[np.int64] = np.zeros((2, POSITIONS, 3), np.int64)
        self._emitted = 0
        self._seconds = 0.0

    @property
    def rounds(self) -> int:
        """Rounds since the beginning."""
        return self._ring.total

    def add_records(self, records: Sequence[Record]) -> None:
        """Count the rounds among the records."""
        for record in records:
            if isinstance(record, Round) and record.index > 0:  # round 0 is the prompt's own token, and no pass
                self._add(record)

    def clear(self) -> None:
        """Forget everything."""
        self._ring.clear()
        self._counts[:] = 0
        self._emitted = 0
        self._seconds = 0.0
        self.version += 1

    def window(self, count: int = SHOWN_ROUNDS) -> RoundWindow:
        """The newest rounds."""
        rows = self._ring.last(count).copy()
        total = self._ring.total
        number = np.arange(total - len(rows) + 1, total + 1, dtype=np.float64)
        return RoundWindow(number, *(np.ascontiguousarray(column) for column in rows.T))

    def positions(self, rate: Rate = "conditional", source: SourceFilter = "all") -> list[PositionRate]:
        """Acceptance per draft position, as far as anything was counted.

        conditional: accepted of the drafts that were tested there, so everything before was accepted.
        survival: accepted of all that were proposed there.
        """
        rows = slice(None) if source == "all" else [_SOURCE_ROW[source]]
        counts = self._counts[rows].sum(axis=0)
        column = _TESTED if rate == "conditional" else _PROPOSED
        result = []
        for place, row in enumerate(counts):
            tests, taken = int(row[column]), int(row[_TAKEN])
            if tests:
                low, high = wilson_interval(taken, tests)
                result.append(PositionRate(place + 1, taken, tests, low, high))
        return result

    def headline(self) -> Headline:
        """The figures above the plots."""
        tested, taken = int(self._counts[..., _TESTED].sum()), int(self._counts[..., _TAKEN].sum())
        return Headline(
            rounds=self.rounds,
            tokens_per_round=self._emitted / self.rounds if self.rounds else None,
            acceptance=taken / tested if tested else None,
            tokens_per_s=self._emitted / self._seconds if self._seconds > 0 else None,
        )

    def _add(self, record: Round) -> None:
        accepted = 0
        for place, draft in enumerate(record.drafts[:POSITIONS]):
            counts = self._counts[_SOURCE_ROW.get(draft.source, 0), place]
            counts[_PROPOSED] += 1
            counts[_TESTED] += draft.verdict != "unused"
            counts[_TAKEN] += draft.verdict == "accepted"
            accepted += draft.verdict == "accepted"
        wait = record.disk_wait_s
        verify = max(0.0, record.verify_s - wait)
        # What the verification cannot have waited, the drafting did.
        drafting = max(0.0, record.draft_s - max(0.0, wait - record.verify_s))
        self._ring.append(
            (1e3 * drafting, 1e3 * verify, 1e3 * wait, len(record.drafts), accepted, len(record.committed))
        )
        self._emitted += len(record.committed)
        self._seconds += record.draft_s + record.verify_s
        self.version += 1
