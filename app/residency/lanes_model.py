"""The newest rounds as spans of time: what the disk, drafting and verifying did. No widgets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from app.language import tr, trn
from app.residency.glance import speed_text
from engine import Record, Round

KEPT_ROUNDS = 24


@dataclass(frozen=True, slots=True)
class Lap:
    """One round on the time line; seconds. Waiting is part of drafting and verifying, and shown apart."""

    number: int
    """1, 2, 3 … since the chat was opened."""
    begin: float
    draft_s: float
    draft_wait_s: float
    verify_s: float
    verify_wait_s: float
    read_s: float
    """Time in which at least one read was under way."""
    bytes_read: int
    tokens: int

    @property
    def seconds(self) -> float:
        return self.draft_s + self.draft_wait_s + self.verify_s + self.verify_wait_s

    @property
    def end(self) -> float:
        return self.begin + self.seconds

    @property
    def wait_s(self) -> float:
        return self.draft_wait_s + self.verify_wait_s

    def sentence(self) -> str:
        """The round in words."""
        words = [
            trn(
                "Round {number}: {seconds:.2f} s, {n} token",
                "Round {number}: {seconds:.2f} s, {n} tokens",
                self.tokens,
                number=self.number,
                seconds=self.seconds,
            )
        ]
        if not self.bytes_read:
            words.append(tr("nothing read"))
        else:
            read = self.bytes_read / 1e6
            if self.read_s > 0:
                speed = speed_text(self.bytes_read / self.read_s)
                words.append(tr("{read:,.0f} MB read at {speed}", read=read, speed=speed))
            else:
                words.append(tr("{read:,.0f} MB read", read=read))
            words.append(tr("{wait:.2f} s waited for the disk", wait=self.wait_s))
        return "; ".join(words) + "."


class LanesModel:
    """Keeps the newest rounds. `version` grows with every change."""

    def __init__(self, kept: int = KEPT_ROUNDS) -> None:
        self.version = 0
        self._laps: deque[Lap] = deque(maxlen=kept)
        self._end = 0.0
        self._count = 0

    @property
    def laps(self) -> Sequence[Lap]:
        """From the oldest to the newest."""
        return tuple(self._laps)

    def add_records(self, records: Sequence[Record]) -> None:
        """Take the rounds among the records; round 0 is no pass of the model."""
        for record in records:
            if isinstance(record, Round) and record.index > 0:
                self._count += 1
                lap = lap_of(record, self._count, self._end)
                self._laps.append(lap)
                self._end = lap.end
                self.version += 1

    def clear(self) -> None:
        """Forget everything."""
        self._laps.clear()
        self._end, self._count = 0.0, 0
        self.version += 1

    def summary(self) -> str:
        """The newest round in words."""
        return self._laps[-1].sentence() if self._laps else tr("No rounds yet.")


def lap_of(record: Round, number: int, begin: float) -> Lap:
    """A round that began at `begin`. Of the waiting, what verifying cannot have waited, drafting did."""
    verify_wait = min(record.disk_wait_s, record.verify_s)
    draft_wait = min(record.disk_wait_s - verify_wait, record.draft_s)
    return Lap(
        number,
        begin,
        record.draft_s - draft_wait,
        draft_wait,
        record.verify_s - verify_wait,
        verify_wait,
        min(record.disk.read_s, record.draft_s + record.verify_s),
        record.bytes_read,
        len(record.committed),
    )
