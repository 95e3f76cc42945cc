"""A reply in numbers, counted in one place from its rounds: for records, command line, trace and window alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.decoding.records import DiskUse, Phase, PositionCount, Round, Stats, StopReason


class StatsCounter:
    """Counts rounds as they come. Round 0 (the prompt's own token) is no pass and no round, but its token counts."""

    def __init__(self, draft_step_bytes: int = 0) -> None:
        self._draft_step_bytes = draft_step_bytes
        self._rounds = self._draft_passes = self._drafted = self._emitted = self._prompted = 0
        self._histogram: list[int] = []  # rounds by accepted drafts
        self._tried: list[int] = []  # by position in the draft
        self._accepted: list[int] = []
        self._draft_s = self._verify_s = self._disk_wait_s = 0.0
        self._bytes_read = 0
        self._disk = DiskUse()

    def add(self, record: Round) -> None:
        """Count one round."""
        self._emitted += len(record.committed)
        self._draft_s += record.draft_s
        self._verify_s += record.verify_s
        self._disk_wait_s += record.disk_wait_s
        self._bytes_read += record.bytes_read
        self._disk = self._disk.plus(record.disk)
        if record.index == 0:
            self._prompted += len(record.committed)
            return
        self._rounds += 1
        self._draft_passes += record.draft_passes
        self._drafted += len(record.drafts)
        accepted = 0
        for i, draft in enumerate(record.drafts):
            if draft.verdict == "unused":
                break
            _count(self._tried, i)
            if draft.verdict == "accepted":
                _count(self._accepted, i)
                accepted += 1
        _count(self._histogram, accepted)

    def stats(self, stop_reason: StopReason) -> Stats:
        """The numbers so far; those that only a session knows (prompt, prefill) are left at zero."""
        tested, accepted = sum(self._tried), sum(self._accepted)
        seconds = self._draft_s + self._verify_s
        said = self._emitted - self._prompted  # by the passes that the seconds are of
        kept = [*self._accepted, *[0] * (len(self._tried) - len(self._accepted))]
        return Stats(
            rounds=self._rounds,
            target_passes=self._rounds,
            draft_passes=self._draft_passes,
            drafted=self._drafted,
            tested=tested,
            accepted=accepted,
            emitted=self._emitted,
            accepted_histogram=tuple(self._histogram),
            per_position=tuple(PositionCount(t, a) for t, a in zip(self._tried, kept, strict=True)),
            draft_s=self._draft_s,
            verify_s=self._verify_s,
            disk_wait_s=self._disk_wait_s,
            total_s=seconds,
            bytes_read=self._bytes_read,
            draft_step_bytes=self._draft_step_bytes,
            tokens_per_s=said / seconds if seconds > 0 else 0.0,
            tokens_per_round=said / self._rounds if self._rounds else 0.0,
            acceptance=accepted / tested if tested else None,
            stop_reason=stop_reason,
            disk=self._disk,
        )


def stats_of(rounds: Iterable[Round], stop_reason: StopReason = "end", phase: Phase | None = None) -> Stats:
    """The numbers of `rounds`, or of those that began in `phase`."""
    counter = StatsCounter()
    for record in rounds:
        if phase is None or record.phase == phase:
            counter.add(record)
    return counter.stats(stop_reason)


@dataclass(frozen=True, slots=True)
class PositionAcceptance:
    """Acceptance at one position of a draft, 1 being the first."""

    position: int
    tried: int
    accepted: int
    share: float
    """accepted / tried: the chance of being accepted once everything before was."""
    low: float
    high: float
    """95 % Wilson interval of `share`."""
    survival: float
    """The chance that a draft is accepted up to and including this position: the product of the shares."""


def acceptance_by_position(counts: Sequence[PositionCount]) -> tuple[PositionAcceptance, ...]:
    """What `Stats.per_position` says about acceptance; ends at the first position that was never tried."""
    result: list[PositionAcceptance] = []
    survival = 1.0
    for position, count in enumerate(counts, 1):
        if count.tried == 0:
            break
        share = count.accepted / count.tried
        survival *= share
        low, high = wilson_interval(count.accepted, count.tried)
        result.append(PositionAcceptance(position, count.tried, count.accepted, share, low, high, survival))
    return tuple(result)


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """The score interval of a share (Wilson, "Probable inference, the law of succession, …", 1927); z = 1.96 for 95 %.
    (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, z * z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


def _count(counts: list[int], index: int) -> None:
    """Add one to `counts[index]`, lengthening it as needed."""
    counts.extend([0] * (index + 1 - len(counts)))
    counts[index] += 1
