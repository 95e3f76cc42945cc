"""The longest suffix that occurred before, by looking everywhere."""

from __future__ import annotations

from collections.abc import Sequence


def longest_match(tokens: Sequence[int], max_ngram: int) -> tuple[int, int] | None:
    """(position after the most recent earlier occurrence, length) of the longest suffix of 2…max_ngram tokens."""
    for n in range(min(max_ngram, len(tokens) - 1), 1, -1):
        suffix = list(tokens[-n:])
        for start in range(len(tokens) - n - 1, -1, -1):
            if list(tokens[start : start + n]) == suffix:
                return start + n, n
    return None
