"""How long verification takes for each draft length, learnt from few and noisy rounds.

Verification time is a staircase rather than a line (kernels work in blocks of rows), so nothing is assumed between
lengths once they are measured. Until then a guess stands in that errs on the cheap side: a length that could be good is
tried, and trying tells.
"""

from __future__ import annotations

from collections import deque

_WINDOW = 7
"""Samples kept of a length; their median counts, so that a hiccup does not."""
_ENOUGH = 2
"""Samples before a length is known: the first may have met cold pages."""
_STALE = 50
"""Passes after which what was measured of a length may no longer be so."""
_SHIFT = 1.3
"""If all of a window is that much above or below what was usual, costs have changed (a budget, another program)."""


class VerifyTimes:
    """Seconds of a verification pass by draft length, 0 … `most`."""

    def __init__(self, most: int) -> None:
        self._lengths = range(most + 1)
        self._samples: list[deque[float]] = [deque(maxlen=_WINDOW) for _ in self._lengths]
        self._usual: list[float | None] = [None for _ in self._lengths]  # what a length took when it last settled
        self._seen = [0] * (most + 1)  # round of the last sample
        self._round = 0
        self.expected: list[float | None] = [None for _ in self._lengths]
        """By length: what a pass will take; a cheap guess where little is known, None where nothing can be said."""
        self.least: list[float | None] = [None for _ in self._lengths]
        """By length: the least that a pass could take: what the nearest shorter known one takes (a flat step), or,
        where none is, in proportion to the nearest longer one."""

    def add(self, length: int, seconds: float) -> None:
        """A pass with `length` drafts took `seconds`."""
        self._round += 1
        self._samples[length].append(seconds)
        self._seen[length] = self._round
        if len(self._samples[length]) == _WINDOW:
            self._notice_shift(length)
        self._estimate()

    def known(self, length: int) -> bool:
        """Whether enough passes were measured at this length."""
        return len(self._samples[length]) >= _ENOUGH

    def stale(self, length: int) -> bool:
        """Whether the last pass at this length was long ago."""
        return self._round - self._seen[length] >= _STALE

    def _notice_shift(self, length: int) -> None:
        samples, usual, middle = self._samples[length], self._usual[length], _typical(self._samples[length])
        if usual is not None and (min(samples) > usual * _SHIFT or max(samples) < usual / _SHIFT):
            for other in self._lengths:
                if other != length:
                    self._samples[other].clear()
                    self._usual[other] = None
        if usual is None or not usual / _SHIFT < middle < usual * _SHIFT:
            self._usual[length] = middle

    def _estimate(self) -> None:
        known = {n: _typical(samples) for n, samples in enumerate(self._samples) if len(samples) >= _ENOUGH}
        for length in known:  # more rows never take less: an old estimate above a longer pass's is outdated
            if self.stale(length):
                known[length] = min(seconds for n, seconds in known.items() if n >= length)
        below: int | None = None  # the nearest known lengths on either side
        for length in self._lengths:
            guess = _guess(length, below, min((n for n in known if n > length), default=None), known)
            self.least[length] = guess if below is None else known[below]
            if length in known:
                guess = known[length]
                below = length
            elif self._samples[length]:
                guess = self._samples[length][0] if guess is None else min(guess, self._samples[length][0])
            self.expected[length] = guess


def _guess(length: int, below: int | None, above: int | None, known: dict[int, float]) -> float | None:
    """Seconds of a length that is not known, from the nearest known ones on either side."""
    if below is None:  # proportional to rows: it cannot be cheaper
        return None if above is None else known[above] * (length + 1) / (above + 1)
    if above is None:  # flat, and no further than twice what is known
        return known[below] if length <= 2 * below + 2 else None
    share = (length - below) / (above - below)
    return known[below] * (1 - share) + known[above] * share


def _typical(samples: deque[float]) -> float:
    """The median; of two the lower, as a delay is likelier than a gift."""
    return sorted(samples)[(len(samples) - 1) // 2]
