"""What the inspector's plots show, computed from rounds. No widgets, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.inspector.columns import Columns
from engine import Record, Round, wilson_interval

if TYPE_CHECKING:  # NumPy comes with the plots, after the window's first paint
    from app.inspector.columns import Floats

SHOWN_ROUNDS = 200
POSITIONS = 16
BINS = 10
"""Of the drafter's probability, for calibration."""
FEW = 20
"""Below this many tests a share says little, and is shown in grey."""

SourceFilter = Literal["all", "mtp", "ngram"]
PhaseFilter = Literal["all", "think", "answer"]
Rate = Literal["conditional", "survival"]
_SOURCES = ("mtp", "ngram")
_PHASES = ("think", "answer")
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
        self._forget_counts()

    def _forget_counts(self) -> None:
        # Plain lists: rounds come one by one, and a single number costs NumPy more than it costs Python.
        self._counts = {(phase, source): _zeros(POSITIONS) for phase in _PHASES for source in _SOURCES}
        self._bins = [[0.0, 0.0, 0.0] for _ in range(BINS)]
        self._sums = [0.0] * 6

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
        self._forget_counts()
        self.version += 1

    def number_of(self, record: Round) -> int | None:
        """The number of a round that was added; the object counts, not what it holds."""
        return self._numbers.get(id(record))

    def window(self, count: int = SHOWN_ROUNDS, last: int | None = None) -> RoundWindow:
        """The newest rounds, or those up to number `last`."""
        end = self.rounds if last is None else min(last, self.rounds)
        import numpy as np

        rows = self._columns.rows(end - count, end)
        number = np.arange(end - len(rows) + 1, end + 1, dtype=np.float64)
        return RoundWindow(number, *(np.ascontiguousarray(column) for column in rows.T))

    def positions(
        self, rate: Rate = "conditional", source: SourceFilter = "all", phase: PhaseFilter = "all"
    ) -> list[PositionRate]:
        """Acceptance per draft position, as far as anything was counted.

        conditional: accepted of the drafts that were tested there, so everything before was accepted.
        survival: accepted of all that were proposed there.
        """
        counts = self._counted(source, phase)
        column = _TESTED if rate == "conditional" else _PROPOSED
        return [_rate(place, row[_TAKEN], row[column]) for place, row in enumerate(counts, 1) if row[column]]

    def _counted(self, source: SourceFilter, phase: PhaseFilter) -> list[list[int]]:
        """Proposed, tested and accepted drafts of each position."""
        chosen = [
            counts
            for (of_phase, of_source), counts in self._counts.items()
            if phase in ("all", of_phase) and source in ("all", of_source)
        ]
        return [[sum(column) for column in zip(*rows, strict=True)] for rows in zip(*chosen, strict=True)]

    def calibration(self) -> list[CalibrationBin]:
        """Acceptance by what the drafter itself claimed. Only drafts with a probability, tested ones, count."""
        return [
            CalibrationBin(claimed / tested, _rate(number, int(taken), int(tested)))
            for number, (tested, taken, claimed) in enumerate(self._bins, 1)
            if tested
        ]

    def headline(self) -> Headline:
        """The figures above the plots."""
        counts = self._counted("all", "all")
        tested, taken = (sum(row[column] for row in counts) for column in (_TESTED, _TAKEN))
        emitted, seconds = self._sums[_EMITTED], self.costs().total_s
        return Headline(
            rounds=self.rounds,
            tokens_per_round=emitted / self.rounds if self.rounds else None,
            acceptance=taken / tested if tested else None,
            tokens_per_s=emitted / seconds if seconds > 0 else None,
        )

    def costs(self) -> Costs:
        """Where the time went."""
        return Costs(*(self._sums[column] / 1e3 for column in (_DRAFT, _VERIFY, _WAIT)))

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
        self._sums = [total + value for total, value in zip(self._sums, row, strict=True)]
        self.version += 1

    def _count_drafts(self, record: Round) -> int:
        accepted = 0
        for place, draft in enumerate(record.drafts[:POSITIONS]):
            taken, tested = draft.verdict == "accepted", draft.verdict != "unused"
            source = draft.source if draft.source in _SOURCES else "mtp"
            row = self._counts[record.phase, source][place]
            row[_PROPOSED] += 1
            row[_TESTED] += tested
            row[_TAKEN] += taken
            if tested and draft.source == "mtp" and draft.draft_probability is not None:
                bin_ = self._bins[min(BINS - 1, int(draft.draft_probability * BINS))]
                bin_[0] += 1
                bin_[1] += taken
                bin_[2] += draft.draft_probability
            accepted += taken
        return accepted


def _zeros(rows: int) -> list[list[int]]:
    return [[0, 0, 0] for _ in range(rows)]


def _rate(position: int, accepted: int, tests: int) -> PositionRate:
    return PositionRate(position, accepted, tests, *wilson_interval(accepted, tests))
