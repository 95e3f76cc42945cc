"""A ring buffer of rows whose newest stretch is always one contiguous array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Ring:
    """The last `capacity` rows of `columns` numbers. Each is written twice, half a buffer apart, so that no window
    ever wraps around the end and readers get views, not copies."""

    def __init__(self, capacity: int, columns: int) -> None:
        self.capacity = capacity
        self.total = 0
        """Rows ever written."""
        self._data: Floats = np.zeros((2 * capacity, columns), np.float64)

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def append(self, row: Sequence[float]) -> None:
        """Add one row, over the oldest one if the ring is full."""
        at = self.total % self.capacity
        self._data[at] = row
        self._data[at + self.capacity] = row
        self.total += 1

    def last(self, count: int) -> Floats:
        """A view of the newest rows, oldest first; at most `count`. Valid until the next `append`."""
        count = min(count, len(self))
        end = (self.total - 1) % self.capacity + 1 + self.capacity if self.total else self.capacity
        return self._data[end - count : end]

    def clear(self) -> None:
        """Forget all rows."""
        self.total = 0
