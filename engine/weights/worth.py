"""How much each routed expert was used of late: recency and frequency in one number."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

Key = tuple[str, int]
"""(unit, expert)"""
_FADE = math.log(1 / 0.95)
"""A use counts 5 % less with every later pass over its layer."""


class Worth:
    """Σ 0.95^(passes since) over the uses of an expert, kept as a logarithm that does not change between uses.

    All fade at the same rate, so who is worth least is decided by numbers that change only when an expert is used.
    """

    def __init__(self) -> None:
        self._passes: dict[str, int] = {}
        self._scores: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []

    def use(self, unit: str, experts: Iterable[int]) -> None:
        """A pass over `unit` uses `experts`."""
        now = self._passes[unit] = self._passes.get(unit, 0) + 1
        for expert in experts:
            old = self._scores.get((unit, expert), -math.inf)
            gain = now * _FADE
            high = max(old, gain)
            self._scores[unit, expert] = high + math.log1p(math.exp(min(old, gain) - high))

    def of(self, key: Key) -> float:
        """Comparable between experts; −infinity if it was never used."""
        return self._scores.get(key, -math.inf)

    def offer(self, key: Key) -> None:
        """The expert may be evicted from now on."""
        heapq.heappush(self._heap, (self.of(key), key))

    def least(self, evictable: Callable[[Key], bool]) -> Key | None:
        """The offered expert that is worth least among those that are `evictable` now."""
        passed: list[tuple[float, Key]] = []
        found = None
        while self._heap and found is None:
            score, key = heapq.heappop(self._heap)
            if score != self.of(key):
                passed.append((self.of(key), key))  # it was used since it was offered
                heapq.heappush(self._heap, passed.pop())
            elif evictable(key):
                found = key
                passed.append((score, key))
            else:
                passed.append((score, key))
        for item in passed:
            heapq.heappush(self._heap, item)
        return found

    def forget(self, keep: Callable[[Key], bool]) -> None:
        """Drop offers of experts that are not kept any more, and doubles."""
        self._heap = [(self.of(key), key) for key in {key for _, key in self._heap} if keep(key)]
        heapq.heapify(self._heap)

    @property
    def offers(self) -> int:
        return len(self._heap)
