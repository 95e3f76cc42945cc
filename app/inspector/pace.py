"""How often plots may be drawn while a reply streams: as seldom as keeps their share of the time small.

Drawing holds the interpreter's lock, which the engine needs between two kernels. So what drawing costs on this computer
is measured each time, and the next drawing waits until that is no more than a small share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

SHARE = 0.01
"""Of the window's thread, for plots."""
LONGEST_S = 2.0


class Pace:
    """`begin` and `end` around a drawing; `rest_ms` tells how long the next one has to wait."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, work: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._work = work
        self._began = 0.0
        self._worked = 0.0
        self._next = -math.inf
        self._hurried = False

    def begin(self) -> None:
        """A drawing begins."""
        self._began, self._worked = self._clock(), self._work()

    def end(self) -> None:
        """It is on the screen."""
        cost = self._work() - self._worked
        self._next = -math.inf if self._hurried else self._began + min(LONGEST_S, cost / SHARE)
        self._hurried = False

    def hurry(self) -> None:
        """The engine has ended: what is missing may be drawn at once, also after a drawing that has begun."""
        self._next = -math.inf
        self._hurried = True

    def rest_ms(self) -> int:
        """Milliseconds until the next drawing may begin."""
        rest = self._next - self._clock()
        return math.ceil(1000 * rest) if rest > 0 else 0
