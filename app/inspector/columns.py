"""Numbers of every round, row after row, in one array that grows as lists do."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy comes with the plots, after the window's first paint
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Columns:
    """An append-only table of `width` numbers a row. Appending stays cheap, also after 100,000 rows."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._data = array("d")

    def __len__(self) -> int:
        return len(self._data) // self._width

    def append(self, row: Sequence[float]) -> None:
        """Add one row."""
        self._data.extend(row)

    def rows(self, first: int, end: int) -> Floats:
        """A copy of rows first…end-1, as far as there are any."""
        import numpy as np

        cut = self._data[max(0, first) * self._width : max(0, end) * self._width]
        return np.frombuffer(cut, np.float64).reshape(-1, self._width)

    def clear(self) -> None:
        """Forget all rows."""
        self._data = array("d")
