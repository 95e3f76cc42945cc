"""In which order a pass uses its units: declared at first, then as the last pass did."""

from __future__ import annotations

from collections.abc import Sequence


class ExecutionOrder:
    """Predicts the coming units from the last complete pass.

    A pass begins at the first declared unit (`layers.0`) and is complete once it has used `last_layer`; what follows up
    to the next pass (head, drafting steps) belongs to it. Drafting may repeat units, any number of times.
    """

    def __init__(self, declared: Sequence[str], last_layer: str) -> None:
        self._first = declared[0]
        self._last_layer = last_layer
        self._pattern = list(declared)
        self._current: list[str] = []
        self._next = 0  # index into the pattern of the unit that is expected next

    def visit(self, unit: str) -> None:
        """The pass uses `unit` now."""
        if unit == self._first:
            if self._last_layer in self._current:
                self._pattern = self._current
            self._current, self._next = [], 0
        self._current.append(unit)
        self._next = self._place(unit)

    def coming(self) -> list[str]:
        """One whole cycle of units from the next one on; a unit may stand there several times."""
        return self._pattern[self._next :] + self._pattern[: self._next]

    def around(self, count: int) -> list[str]:
        """The running unit and the ones after it, `count` in all."""
        return [*self._current[-1:], *self.coming()][:count]

    def _place(self, unit: str) -> int:
        """Index after the next place of `unit` in the pattern; where it is unknown, expectations stay as they are."""
        for later in (self._pattern[self._next :], self._pattern):
            if unit in later:
                return len(self._pattern) - len(later) + later.index(unit) + 1
        return self._next
