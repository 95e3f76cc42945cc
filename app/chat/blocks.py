"""Blocks of a transcript: stretches of one entry that are set alike and laid out together. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from app.chat.cells import Entry, Note, Reply, UserMessage
from app.chat.token_layout import TokenLayout

BLOCK_CELLS = 1024
"""A block ends at the first newline after this many cells, or at twice as many."""


class Style(Enum):
    """Whose words a block holds, which decides how it is set."""

    USER = "user"
    ANSWER = "answer"
    THINKING = "thinking"
    NOTE = "note"
    ERROR = "error"
    CALL = "call"
    """A tool call."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes in pixels that the fonts and the window give."""

    left: float
    """Where the text column begins."""
    column: float
    """Width of the text column."""
    line: float
    """Height of a row of text."""
    small_line: float
    """Height of a row of a note."""
    label: float
    """Height of a label above a block."""
    average: float
    """Mean width of a character, for estimates."""
    gap: float
    """Space between two entries."""
    pad: float
    """Space between a card's edge and its text."""


class Place(NamedTuple):
    """A place between two characters: the order of places is the order of reading."""

    entry: int
    cell: int
    offset: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A round of a reply that is looked at: cells first…end-1 of one entry."""

    entry: int
    first: int
    end: int
    travel: bool
    """Show what had been said by then, and nothing after it; else only mark the round."""


class Hit(NamedTuple):
    """A piece under a point."""

    block: int
    row: int
    piece: int


@dataclass(slots=True, eq=False)
class Block:
    """Cells first…last-1 of one entry."""

    entry: int
    style: Style
    first: int
    last: int
    opens: bool
    """The first block of its entry."""
    label: str = ""
    closes: bool = False
    """The last block of its entry (user cards round their corners there)."""
    characters: int = 0
    newlines: int = 0
    layout: TokenLayout | None = None
    laid: int = 0
    """Cells that the layout holds: first…laid-1."""
    height: float = 0.0
    content: float = 0.0
    """Width of the widest row; the whole width while not laid out."""

    @property
    def small(self) -> bool:
        """Set in the small font."""
        return self.style in (Style.NOTE, Style.ERROR, Style.CALL)

    @property
    def card(self) -> bool:
        """Set on a card of its own."""
        return self.style in (Style.USER, Style.ERROR, Style.CALL)


_TONES = {"info": Style.NOTE, "error": Style.ERROR, "call": Style.CALL}


def style_of(entry: Entry, cell: int) -> Style:
    """How a cell is set."""
    if isinstance(entry, UserMessage):
        return Style.USER
    if isinstance(entry, Note):
        return _TONES[entry.tone]
    assert isinstance(entry, Reply)
    return Style.THINKING if entry.thinking(cell) else Style.ANSWER


def is_full(block: Block, entry: Entry) -> bool:
    """Whether the next cell goes to another block."""
    cells = block.last - block.first
    return cells >= 2 * BLOCK_CELLS or (cells >= BLOCK_CELLS and entry.texts[block.last - 1].endswith("\n"))


def end_of(block: Block, entry: Entry) -> int:
    """Where a block that goes on at its `last` ends: at another style, when it is full, or with the entry."""
    end = entry.phase_end(block.last) if isinstance(entry, Reply) else len(entry)
    end = min(end, block.first + 2 * BLOCK_CELLS)
    for cell in range(max(block.last, block.first + BLOCK_CELLS - 1), end):
        if entry.texts[cell].endswith("\n"):
            return cell + 1
    return end
