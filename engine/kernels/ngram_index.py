"""Where the last tokens occurred before: an index of all runs of 2…max_ngram tokens that grows and shrinks at its end.

For every position and every n, `previous` holds where the n tokens that end there ended the time before, or −1. A hash
table per n (open addressing) leads from n tokens to where they ended last; an entry is that position, compared by the
tokens themselves, so that equal hashes do no harm. A lookup is then one read per n. Taking the newest token back
restores what its entry was, and as that is done in the opposite order of adding, the table is exactly what it was.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.compiled import kernel

_MIN_NGRAM = 2  # a single token is no evidence
_FIRST_CAPACITY = 1024
_NONE = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio (Knuth, The Art of Computer Programming 6.4)

_TABLES = "int32[::1], int32[:, ::1], int32[:, ::1]"


@njit
def _slot(tokens, table, end, n):  # type: ignore[no-untyped-def]
    """The slot of `table` that belongs to the n tokens before `end`: theirs, or the free one where they would go."""
    mask = np.uint64(table.size - 1)
    code = np.uint64(0)
    for i in range(end - n, end):
        code = (code ^ np.uint64(tokens[i])) * _MULTIPLIER
        code ^= code >> np.uint64(29)
    slot = code & mask
    while table[slot] != _NONE:
        other = table[slot]
        same = True
        for i in range(1, n + 1):
            if tokens[other - i] != tokens[end - i]:
                same = False
                break
        if same:
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel(f"void({_TABLES}, int64, int64)")
def _index_tokens(tokens, tables, previous, start, end):  # type: ignore[no-untyped-def]
    """Enter the runs that end with each of the tokens start…end − 1; an entry is the position after the run."""
    for length in range(start + 1, end + 1):
        for level in range(tables.shape[0]):
            n = level + _MIN_NGRAM
            if n > length:
                previous[level, length - 1] = _NONE
                continue
            slot = _slot(tokens, tables[level], length, n)
            previous[level, length - 1] = tables[level, slot]
            tables[level, slot] = length


@kernel(f"void({_TABLES}, int64, int64)")
def _forget_tokens(tokens, tables, previous, start, end):  # type: ignore[no-untyped-def]
    """Undo `_index_tokens`, newest token first."""
    for length in range(end, start, -1):
        for level in range(min(tables.shape[0], length - _MIN_NGRAM + 1)):
            slot = _slot(tokens, tables[level], length, level + _MIN_NGRAM)
            tables[level, slot] = previous[level, length - 1]


class NgramIndex:
    """The tokens of a conversation, and where their last 2…max_ngram tokens occurred before."""

    def __init__(self, max_ngram: int = 5) -> None:
        """Raises ValueError if max_ngram is below 2: a single token would match everywhere."""
        if max_ngram < _MIN_NGRAM:
            raise ValueError(f"the longest n-gram must have at least {_MIN_NGRAM} tokens, not {max_ngram}")
        self.max_ngram = max_ngram
        self._length = 0
        self._allocate(_FIRST_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        """Room for `capacity` tokens, a power of two; nothing is entered yet."""
        levels = self.max_ngram - _MIN_NGRAM + 1
        self._tokens: npt.NDArray[np.int32] = np.empty(capacity, np.int32)
        self._previous = np.empty((levels, capacity), np.int32)
        self._tables = np.full((levels, 2 * capacity), _NONE, np.int32)  # at most half full: short probes

    def __len__(self) -> int:
        return self._length

    def append(self, token: int) -> None:
        """Add one token at the end."""
        self.extend((token,))

    def extend(self, tokens: Iterable[int]) -> None:
        """Add tokens at the end."""
        new = np.fromiter(tokens, np.int32)
        start, end = self._length, self._length + new.size
        if end > self._tokens.size:
            kept = self._tokens[:start]
            self._allocate(1 << (end - 1).bit_length())
            self._tokens[:start] = kept
            start = 0  # a table of another size is entered anew
        self._tokens[self._length : end] = new
        _index_tokens(self._tokens, self._tables, self._previous, start, end)
        self._length = end

    def truncate(self, length: int) -> None:
        """Take tokens back until `length` are left; the index is then as if they had never come.

        Raises ValueError if there are fewer.
        """
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot cut {self._length} tokens to {length}")
        _forget_tokens(self._tokens, self._tables, self._previous, length, self._length)
        self._length = length

    def longest_match(self) -> tuple[int, int] | None:
        """(position after the earlier occurrence, n) for the longest suffix of 2…max_ngram tokens that occurred before,
        at its most recent earlier occurrence; None if there is none. What followed then starts at that position."""
        if self._length:
            for level in range(self._previous.shape[0] - 1, -1, -1):
                position = int(self._previous[level, self._length - 1])
                if position != _NONE:
                    return position, level + _MIN_NGRAM
        return None

    def following(self, position: int, count: int) -> list[int]:
        """Up to `count` tokens from `position` on."""
        tokens: list[int] = self._tokens[position : min(position + count, self._length)].tolist()
        return tokens
