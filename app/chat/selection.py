"""What is selected in a transcript, and its text. No Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.chat.blocks import Place
from app.chat.cells import Entry

_WORD = re.compile(r"\w")


class Selection:
    """Everything between two places. Ghosts lie in it, but do not belong to its text."""

    def __init__(self) -> None:
        self.anchor = Place(0, 0, 0)
        self.head = Place(0, 0, 0)

    @property
    def empty(self) -> bool:
        return self.anchor == self.head

    @property
    def first(self) -> Place:
        return min(self.anchor, self.head)

    @property
    def last(self) -> Place:
        return max(self.anchor, self.head)

    def clear(self) -> None:
        """Select nothing."""
        self.anchor = self.head

    def inside(self, at: Place, length: int) -> tuple[int, int]:
        """Which of the `length` characters from `at` on are selected: from…to, relative to `at`."""
        first, last = self.first, self.last
        low = high = 0
        if first < last:
            cell = at[:2]
            low = 0 if first[:2] < cell else max(0, first.offset - at.offset) if first[:2] == cell else length
            high = length if last[:2] > cell else min(length, last.offset - at.offset) if last[:2] == cell else 0
        return low, max(low, high)

    def select_all(self, entries: Sequence[Entry]) -> None:
        """From the first character to the last."""
        self.anchor = Place(0, 0, 0)
        self.head = Place(len(entries), 0, 0)

    def select_word(self, entries: Sequence[Entry], at: Place) -> None:
        """The word around a place, across the tokens that it consists of; a single character elsewhere."""
        self.anchor, self.head = word_at(entries[at.entry], at)

    def text(self, entries: Sequence[Entry]) -> str:
        """The selected text without ghosts; entries are separated by an empty line."""
        if self.empty:
            return ""
        first, last = self.first, self.last
        stretches = (
            _text_between(entries[index], index, first, last)
            for index in range(first.entry, min(last.entry + 1, len(entries)))
        )
        return "\n\n".join(stretch for stretch in stretches if stretch)


def word_at(entry: Entry, at: Place) -> tuple[Place, Place]:
    """First and last place of the word around a character."""
    start = end = Place(at.entry, at.cell, min(at.offset, max(0, len(entry.texts[at.cell]) - 1)))
    character = _character(entry, start)
    end = _next(entry, end)
    if not _WORD.match(character):
        return start, end
    while (before := _previous(entry, start)) is not None and _WORD.match(_character(entry, before)):
        start = before
    while end.cell < len(entry) and _WORD.match(_character(entry, end)):
        end = _next(entry, end)
    return start, end


def _text_between(entry: Entry, index: int, first: Place, last: Place) -> str:
    low = first.cell if first.entry == index else 0
    high = last.cell if last.entry == index else len(entry) - 1
    parts = []
    for cell in range(low, min(high + 1, len(entry))):
        if entry.kind(cell).ghost:
            continue
        text = entry.texts[cell]
        end = last.offset if (index, cell) == last[:2] else len(text)
        start = first.offset if (index, cell) == first[:2] else 0
        parts.append(text[start:end])
    return "".join(parts)


def _character(entry: Entry, at: Place) -> str:
    text = entry.texts[at.cell]
    return text[at.offset] if at.offset < len(text) else ""


def _next(entry: Entry, at: Place) -> Place:
    """The place after the character at `at`, at the next character that is not a ghost's, or at the entry's end."""
    if at.offset + 1 < len(entry.texts[at.cell]):
        return at._replace(offset=at.offset + 1)
    cell = at.cell + 1
    while cell < len(entry) and (entry.kind(cell).ghost or not entry.texts[cell]):
        cell += 1
    return Place(at.entry, cell, 0)


def _previous(entry: Entry, at: Place) -> Place | None:
    if at.offset > 0:
        return at._replace(offset=at.offset - 1)
    cell = at.cell - 1
    while cell >= 0 and (entry.kind(cell).ghost or not entry.texts[cell]):
        cell -= 1
    return Place(at.entry, cell, len(entry.texts[cell]) - 1) if cell >= 0 else None
