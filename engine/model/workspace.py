"""Named float32 buffers that are made once and used again in every pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

_FEW_ROWS = 15
"""What a pass of decoding or verification has at most."""


class Workspace:
    """Hands out [rows, columns] arrays by name; the same name gives the same memory again.

    Fresh memory costs a page fault per 4 KiB on first touch, which on virtual machines is slower than the arithmetic.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, FloatArray] = {}
        self._short: dict[tuple[str, int, int], FloatArray] = {}

    def array(self, name: str, rows: int, columns: int) -> FloatArray:
        """A C-contiguous array [rows, columns] with undefined contents, valid until `name` is asked for again.

        Few rows get the same object each time, by which products recognise what they have been planned for.
        """
        array = self._short.get((name, rows, columns))
        if array is None:
            array = self._new_view(name, rows, columns)
            if rows <= _FEW_ROWS:
                self._short[name, rows, columns] = array
        return array

    def _new_view(self, name: str, rows: int, columns: int) -> FloatArray:
        needed = rows * columns
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < needed:
            buffer = self._buffers[name] = np.empty(needed, np.float32)
            self._short = {key: array for key, array in self._short.items() if key[0] != name}
        return buffer[:needed].reshape(rows, columns)

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())
