"""Finds what was meant from a few letters of it."""

from __future__ import annotations


def score(query: str, text: str) -> float | None:
    """How well `query` fits `text`, higher is better; None if its letters do not occur in that order.

    Letters at the starts of words and in unbroken runs count more; every word of the query has to fit.
    """
    total = 0.0
    for word in query.lower().split():
        best = _word(word, text.lower())
        if best is None:
            return None
        total += best
    return total - len(text) / 1000


def _word(word: str, text: str) -> float | None:
    if (at := text.find(word)) >= 0:
        start = at == 0 or not text[at - 1].isalnum()
        return 4.0 * len(word) if start else 3.0 * len(word)
    total, at = 0.0, -1
    for letter in word:
        found = text.find(letter, at + 1)
        if found < 0:
            return None
        start = found == 0 or not text[found - 1].isalnum()
        total += 2.0 if start else 1.0 if found == at + 1 else 0.2
        at = found
    return total
