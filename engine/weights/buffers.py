"""Memory that disk reads go into: aligned to pages, and given back to the system when the last view of it is gone."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.errors import OptionError

ByteArray = npt.NDArray[np.uint8]


def aligned_buffer(nbytes: int) -> ByteArray:
    """New zeroed uint8 [nbytes] that begins at a page.

    Huge pages where the system has them: reading a weight walks through every byte of it, and so through every page.
    Raises OptionError if there is not so much memory.
    """
    try:
        memory = _anonymous(max(nbytes, 1))
    except (OSError, MemoryError) as error:
        raise OptionError(
            f"The system has no {nbytes / 1e6:,.0f} MB of memory left for weights; choose a smaller memory budget."
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)[:nbytes]


def _anonymous(nbytes: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):  # shared memory, the default, has no huge pages
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


class Arena:
    """One buffer from which contiguous blocks are taken and returned; never more memory than it began with."""

    def __init__(self, nbytes: int) -> None:
        self.buffer = aligned_buffer(nbytes)
        self._gaps: list[tuple[int, int]] = [(0, nbytes)] if nbytes else []  # (begin, end), ascending, never touching

    @property
    def nbytes(self) -> int:
        return len(self.buffer)

    def take(self, nbytes: int) -> int | None:
        """Where a new block of `nbytes` begins, or None if no gap is that large.

        The smallest gap that fits, and of it the end that touches the arena's own: two blocks then lie at opposite ends
        and leave the middle in one piece.
        """
        fitting = [gap for gap in self._gaps if gap[1] - gap[0] >= nbytes]
        if not fitting:
            return None
        begin, end = min(fitting, key=lambda gap: (gap[1] - gap[0], gap[0]))
        index = self._gaps.index((begin, end))
        at_end = begin > 0 and end == self.nbytes
        position = end - nbytes if at_end else begin
        rest = (begin, position) if at_end else (begin + nbytes, end)
        self._gaps[index : index + 1] = [rest] if rest[0] < rest[1] else []
        return position

    def fits(self, nbytes: int, returned: Sequence[tuple[int, int]] = ()) -> bool:
        """Would `take` succeed once the blocks `returned`, each (position, nbytes), were given back?"""
        gaps = _merge([*self._gaps, *((position, position + size) for position, size in returned)])
        return any(end - begin >= nbytes for begin, end in gaps)

    def give_back(self, position: int, nbytes: int) -> None:
        """The block at `position` is free again."""
        self._gaps = _merge([*self._gaps, (position, position + nbytes)])

    def view(self, position: int, nbytes: int) -> ByteArray:
        return self.buffer[position : position + nbytes]


def _merge(gaps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same free space in ascending order, neighbours joined."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(gaps):
        if merged and merged[-1][1] == begin:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
