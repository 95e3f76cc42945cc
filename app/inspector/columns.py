"""Numbers of every round, row after row, in one array that grows as lists do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FIRST = 1024


class Columns:
    """An append-only table of `width` numbers a row. Doubling keeps appending cheap, also after 100,000 rows."""

    def __init__(self, width: int) -> None:
        self._data: Floats = np.zeros((_FIRST, width), np.float64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, row: Sequence[float]) -> None:
        """Add one row."""
        if self._count == len(self._data):
            self._data = np.concatenate((self._data, np.zeros_like(self._data)))
        self._data[self._count] = row
        self._count += 1

    def rows(self, first: int, end: int) -> Floats:
        """A view of rows first…end-1, as far as there are any. Valid until the next `append`."""
        return self._data[max(0, first) : max(0, min(end, self._count))]

    def clear(self) -> None:
        """Forget all rows."""
        self._count = 0
