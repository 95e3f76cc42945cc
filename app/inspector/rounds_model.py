"""What the inspector's plots show, computed from rounds. No widgets, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inspector.columns import Columns, Floats
from engine import Record, Round, wilson_interval

SHOWN_ROUNDS = 200
POSITIONS = 16
BINS = 10
"""Of the drafter's probability, for calibration."""
FEW = 20
"""Below this many tests a share says little, and is shown in grey."""

SourceFilter = Literal["all", "mtp", "ngram"]
PhaseFilter = Literal["all", "think", "answer"]
Rate = Literal["conditional", "survival"]
_SOURCES = {"mtp": 0, "ngram": 1}
_PHASES = {"think": 0, "answer": 1}
_DRAFT, _VERIFY, _WAIT, _OFFERED, _ACCEPTED, _EMITTED = range(6)
_PROPOSED, _TESTED, _TAKEN = range(3)


@dataclass(frozen=True, slots=True)
class RoundWindow:
    """A stretch of rounds, column by column; the arrays are copies."""

    number: Floats
    """1, 2, 3 … since the beginning."""
    draft_ms: Floats
    verify_ms: Floats
    """Verification without what it waited for the disk."""
    wait_ms: Floats
    offered: Floats
    accepted: Floats
    emitted: Floats

    @property
    def total_ms(self) -> Floats:
        """Whole duration of each round."""
        return self.draft_ms + self.verify_ms + self.wait_ms


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
class CalibrationBin:
    """Tested drafts that the drafter gave a probability of about `claimed`."""

    claimed: float
    """Mean of the drafter's probabilities in this bin."""
    rate: PositionRate
    """`position` is the bin's number, from 1."""


@dataclass(frozen=True, slots=True)
class Headline:
    """Everything since the beginning, in four figures; None where there is nothing to divide by."""

    rounds: int
    tokens_per_round: float | None
    acceptance: float | None
    """Accepted of tested drafts."""
    tokens_per_s: float | None
    """Over the time of drafting and verifying."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Where the time of all rounds went, in seconds."""

    draft_s: float
    verify_s: float
    wait_s: float

    @property
    def total_s(self) -> float:
        return self.draft_s + self.verify_s + self.wait_s


class RoundsModel:
    """Counts rounds and keeps them. `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self.log: list[Round] = []
        """Every round; number n is at index n - 1."""
        self._numbers: dict[int, int] = {}
        self._columns = Columns(6)
        self._counts: npt.NDArray[np.int64] = np.zeros((2, 2, POSITIONS, 3), np.int64)
        self._bins: Floats = np.zeros((BINS, 3))
        self._sums: Floats = np.zeros(6)

    @property
    def rounds(self) -> int:
        """Rounds since the beginning."""
        return len(self.log)

    def add_records(self, records: Sequence[Record]) -> None:
        """Count the rounds among the records."""
        for record in records:
            if isinstance(record, Round) and record.index > 0:  # round 0 is the prompt's own token, and no pass
                self._add(record)

    def clear(self) -> None:
        """Forget everything."""
        self.log.clear()
        self._numbers.clear()
        self._columns.clear()
        self._counts[:] = 0
        self._bins[:] = 0
        self._sums[:] = 0
        self.version += 1

    def number_of(self, record: Round) -> int | None:
        """The number of a round that was added; the object counts, not what it holds."""
        return self._numbers.get(id(record))

    def window(self, count: int = SHOWN_ROUNDS, last: int | None = None) -> RoundWindow:
        """The newest rounds, or those up to number `last`."""
        end = self.rounds if last is None else min(last, self.rounds)
        rows = self._columns.rows(end - count, end).copy()
        number = np.arange(end - len(rows) + 1, end + 1, dtype=np.float64)
        return RoundWindow(number, *(np.ascontiguousarray(column) for column in rows.T))

    def positions(
        self, rate: Rate = "conditional", source: SourceFilter = "all", phase: PhaseFilter = "all"
    ) -> list[PositionRate]:
        """Acceptance per draft position, as far as anything was counted.

        conditional: accepted of the drafts that were tested there, so everything before was accepted.
        survival: accepted of all that were proposed there.
        """
        phases = slice(None) if phase == "all" else slice(_PHASES[phase], _PHASES[phase] + 1)
        sources = slice(None) if source == "all" else slice(_SOURCES[source], _SOURCES[source] + 1)
        counts = self._counts[phases, sources].sum(axis=(0, 1))
        column = _TESTED if rate == "conditional" else _PROPOSED
        places = enumerate(counts, 1)
        return [_rate(place, int(row[_TAKEN]), int(row[column])) for place, row in places if row[column]]

    def calibration(self) -> list[CalibrationBin]:
        """Acceptance by what the drafter itself claimed. Only drafts with a probability, tested ones, count."""
        return [
            CalibrationBin(float(claimed / tested), _rate(number, int(taken), int(tested)))
            for number, (tested, taken, claimed) in enumerate(self._bins, 1)
            if tested
        ]

    def headline(self) -> Headline:
        """The figures above the plots."""
        tested, taken = (int(self._counts[..., column].sum()) for column in (_TESTED, _TAKEN))
        emitted, seconds = float(self._sums[_EMITTED]), self.costs().total_s
        return Headline(
            rounds=self.rounds,
            tokens_per_round=emitted / self.rounds if self.rounds else None,
            acceptance=taken / tested if tested else None,
            tokens_per_s=emitted / seconds if seconds > 0 else None,
        )

    def costs(self) -> Costs:
        """Where the time went."""
        return Costs(*(float(self._sums[column]) / 1e3 for column in (_DRAFT, _VERIFY, _WAIT)))

    def _add(self, record: Round) -> None:
        self.log.append(record)
        self._numbers[id(record)] = len(self.log)
        accepted = self._count_drafts(record)
        wait = record.disk_wait_s
        verify = max(0.0, record.verify_s - wait)
        # What the verification cannot have waited, the drafting did.
        drafting = max(0.0, record.draft_s - max(0.0, wait - record.verify_s))
        row = (1e3 * drafting, 1e3 * verify, 1e3 * wait, len(record.drafts), accepted, len(record.committed))
        self._columns.append(row)
        self._sums += row
        self.version += 1

    def _count_drafts(self, record: Round) -> int:
        accepted = 0
        phase = _PHASES[record.phase]
        for place, draft in enumerate(record.drafts[:POSITIONS]):
            taken, tested = draft.verdict == "accepted", draft.verdict != "unused"
            self._counts[phase, _SOURCES.get(draft.source, 0), place] += (1, tested, taken)
            if tested and draft.source == "mtp" and draft.draft_probability is not None:
                bin_ = min(BINS - 1, int(draft.draft_probability * BINS))
                self._bins[bin_] += (1, taken, draft.draft_probability)
            accepted += taken
        return accepted


def _rate(position: int, accepted: int, tests: int) -> PositionRate:
    return PositionRate(position, accepted, tests, *wilson_interval(accepted, tests))
