"""Guesses which experts the next layers will route to, and reads them while the disk has nothing else to do.

The guess: those of the layer's last pass. Neighbouring tokens share many experts, but not always enough; so the guesses
are counted, and when too few are used the prefetcher stops for a while, each time for longer.
"""

from __future__ import annotations

from engine.weights.expert_cache import ExpertCache
from engine.weights.order import ExecutionOrder
from engine.weights.reader import Priority

_LOOK_AHEAD = 3
"""Units: the running one, whose router has not spoken yet, and the next two."""
_TRIAL = 64
"""Guesses that are judged together."""
_WORTH_IT = 1 / 3
"""Least share of used guesses. A wrong one delays a read by half an expert on average and may evict another."""
_FIRST_PAUSE = 2000
"""Opportunities let pass after the first bad trial."""
CACHE_SHARE = 4
"""At most a quarter of the cache holds guesses that were not used yet."""


class ExpertPrefetcher:
    """All methods are called with the reader's lock held."""

    def __init__(self, cache: ExpertCache, order: ExecutionOrder) -> None:
        self._cache = cache
        self._order = order
        self._pause = _FIRST_PAUSE
        self._paused = 0
        self._judged = 0
        self._good = 0

    @property
    def active(self) -> bool:
        return self._paused == 0

    def disk_is_idle(self) -> None:
        """Start at most one read."""
        if self._paused:
            self._paused -= 1
            return
        self._judge()
        if not self.active or self._cache.guessed_bytes * CACHE_SHARE >= self._cache.nbytes:
            return
        for unit in self._order.around(_LOOK_AHEAD):
            for expert in self._cache.last_used.get(unit, ()):
                key = (unit, expert)
                if not self._cache.cached(key):
                    if self._cache.start(key, Priority.IDLE):
                        return
                    break  # no slot is worth less; a less used one of this layer has no better chance

    def _judge(self) -> None:
        """Stop for a while if the last guesses did not pay."""
        judged = self._cache.good_guesses + self._cache.bad_guesses
        if judged - self._judged < _TRIAL:
            return
        share = (self._cache.good_guesses - self._good) / (judged - self._judged)
        self._judged, self._good = judged, self._cache.good_guesses
        if share < _WORTH_IT:
            self._paused, self._pause = self._pause, 2 * self._pause
        else:
            self._pause = _FIRST_PAUSE
