"""How fast a download is and how long it will take, from what came in the last seconds. Pure functions of times."""

from __future__ import annotations

from collections import deque

WINDOW_S = 8.0


class Rate:
    """A moving average; a line that stands still falls to nothing in one window."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def add(self, now: float, done: int) -> None:
        """So much is there at this moment (seconds of any clock that only goes forward)."""
        if self._marks and done < self._marks[-1][1]:
            self._marks.clear()
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= WINDOW_S:
            self._marks.popleft()

    @property
    def per_second(self) -> float | None:
        """Bytes a second; None before there is anything to go by."""
        if len(self._marks) < 2:
            return None
        (first, before), (last, after) = self._marks[0], self._marks[-1]
        return (after - before) / (last - first) if last > first else None

    def seconds_for(self, missing: int) -> float | None:
        """How long the rest will take; None if that cannot be told."""
        speed = self.per_second
        return missing / speed if speed else None


def duration_text(seconds: float) -> str:
    """A time as a person reads it."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
