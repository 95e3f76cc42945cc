"""Moving from token to token. No Qt."""

from __future__ import annotations

from enum import Enum

from app.chat.cells import Reply
from app.chat.document import Document

CellAt = tuple[int, int]
"""(entry, cell)."""


class Direction(Enum):
    """Where an arrow key leads."""

    BACK = "back"
    ON = "on"
    UP = "up"
    DOWN = "down"


def first_cell(document: Document) -> CellAt | None:
    """The first visible token of the first reply."""
    return _from(document, (0, -1), 1)


def last_cell(document: Document) -> CellAt | None:
    """The last visible token of the last reply."""
    return _from(document, (len(document.entries) - 1, len(document.entries[-1])), -1) if document.entries else None


def move(document: Document, at: CellAt, direction: Direction) -> CellAt | None:
    """The token in a direction; None at the end of the way."""
    if direction is Direction.ON:
        return _from(document, at, 1)
    if direction is Direction.BACK:
        return _from(document, at, -1)
    return _vertical(document, at, 1 if direction is Direction.DOWN else -1)


def _from(document: Document, at: CellAt, step: int) -> CellAt | None:
    entry, cell = at[0], at[1] + step
    while 0 <= entry < len(document.entries):
        content = document.entries[entry]
        while isinstance(content, Reply) and 0 <= cell < len(content):
            if not document.hides(entry, cell):
                return entry, cell
            cell += step
        entry += step
        cell = 0 if step > 0 or not 0 <= entry < len(document.entries) else len(document.entries[entry]) - 1
    return None


def _vertical(document: Document, at: CellAt, step: int) -> CellAt | None:
    """The token straight above or below, in the next row that has tokens of a reply."""
    here = next(document.pieces_of(*at), None)
    if here is None:
        return _from(document, at, step)
    index, row, piece = here
    block = document.blocks[index]
    assert block.layout is not None
    left, right = document.spans(index, row)[piece - block.layout.row(row)[0]]
    x = document.text_left(block) + (left + right) / 2
    while True:
        row += step
        while not 0 <= row < _rows(document, index):
            index += step
            if not 0 <= index < len(document.blocks):
                return None
            document.lay_out([index])
            row = 0 if step > 0 else _rows(document, index) - 1
        if isinstance(document.entries[document.blocks[index].entry], Reply):
            return _nearest(document, index, row, x)


def _rows(document: Document, index: int) -> int:
    layout = document.blocks[index].layout
    return layout.rows if layout is not None else 0


def _nearest(document: Document, index: int, row: int, x: float) -> CellAt | None:
    block = document.blocks[index]
    assert block.layout is not None
    inside = x - document.text_left(block)
    pieces = zip(block.layout.row(row), document.spans(index, row), strict=True)
    distances = [(max(left - inside, inside - right, 0.0), piece) for piece, (left, right) in pieces]
    return (block.entry, block.layout.token[min(distances)[1]]) if distances else None
