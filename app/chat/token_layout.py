"""Line breaking for tokens: widths in, rows out. Pure, incremental, without Qt.

Each token's text is cut into *pieces*: at newlines, and where it is wider than a whole row. Pieces are placed greedily
from left to right; where one does not fit, the row breaks at the last place between words, else right there. So only
the last row can still change when tokens are appended, and appending gives the same rows as laying out all at once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NEWLINE = "\n"

_IDEOGRAPH = (
    r"\u2e80-\u2fff\u3000-\u303f\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\uff00-\uffef\U0001f300-\U0001faff\U00020000-\U0003ffff"
)
_BREAK_AFTER = re.compile(rf"[\s\-/\u2010\u2013\u2014{_IDEOGRAPH}]$")
_BREAK_BEFORE = re.compile(rf"^[\s{_IDEOGRAPH}]")
_NEVER_BEFORE = re.compile(r"^[,.;:!?)\]}\u2019\u201d\u3001\u3002\u300d\u300f\uff01\uff09\uff0c\uff1a\uff1b\uff1f]")


@dataclass(frozen=True, slots=True)
class Measure:
    """What the layout needs to know of a string."""

    width: float
    lead: float
    """Width of the white space that it begins with; swallowed where a row begins."""
    blank: bool
    """Nothing but white space."""
    breaks_before: bool
    breaks_after: bool
    clings: bool
    """Punctuation that never begins a row."""


def measured(text: str, width_of: Callable[[str], float]) -> Measure:
    """The measure of `text`, given a function for the width of any string."""
    stripped = text.lstrip()
    return Measure(
        width=width_of(text),
        lead=width_of(text[: len(text) - len(stripped)]) if len(stripped) < len(text) else 0.0,
        blank=not stripped and bool(text),
        breaks_before=bool(stripped) and bool(_BREAK_BEFORE.search(text)),
        breaks_after=bool(_BREAK_AFTER.search(text)),
        clings=bool(_NEVER_BEFORE.search(text)),
    )


class TokenLayout:
    """Rows of pieces, none wider than `width`.

    `measure(text, small)` gives a string's measure in the font of tokens, or of ghosts where `small`. An empty text
    (a token in the middle of a character) has the width that `measure("", …)` gives it. Pieces are kept in columns:
    `token`, `start` (offset in the token's text), `text`, `x`, `width`; row r holds the pieces rows[r]…rows[r+1]-1.
    """

    def __init__(self, width: float, measure: Callable[[str, bool], Measure]) -> None:
        self.width = max(1.0, width)
        self._measure = measure
        self.token = array("L")
        self.start = array("L")
        self.text: list[str] = []
        self.x = array("d")
        self.piece_width = array("d")
        self._row_starts = array("L", [0])
        self._end = 0.0
        self._opportunity = -1
        """First piece after the last break opportunity in the open row; -1 if there is none."""
        self._after_break = False
        self._closed = False
        """The open row ended with a newline: the next piece begins a new one."""

    @property
    def rows(self) -> int:
        """Number of rows; a trailing newline opens no row until something follows."""
        return len(self._row_starts)

    @property
    def pieces(self) -> int:
        return len(self.text)

    def row(self, index: int) -> range:
        """Indices of the pieces in a row."""
        end = self._row_starts[index + 1] if index + 1 < self.rows else self.pieces
        return range(self._row_starts[index], end)

    def row_of_piece(self, piece: int) -> int:
        """The row that holds a piece."""
        low, high = 0, self.rows - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._row_starts[middle] <= piece:
                low = middle
            else:
                high = middle - 1
        return low

    def first_piece_of(self, token: int) -> int:
        """The first piece that belongs to `token` or a later one; the number of pieces if there is none."""
        low, high = 0, self.pieces
        while low < high:
            middle = (low + high) // 2
            if self.token[middle] < token:
                low = middle + 1
            else:
                high = middle
        return low

    def append(self, tokens: Iterable[tuple[int, str, bool]]) -> int:
        """Place more tokens, given as (index, text, small). Returns the first row that changed."""
        first = max(0, self.rows - 1)
        for token, text, small in tokens:
            if NEWLINE not in text:
                self._place(token, 0, text, small)
                continue
            start = 0
            for part in re.split(f"({NEWLINE})", text):
                if part:
                    self._place(token, start, part, small)
                    start += len(part)
        return first

    def _place(self, token: int, start: int, text: str, small: bool) -> None:
        if self._closed:
            self._open_row(self.pieces)
        measure = self._measure(text, small)
        if text == NEWLINE:
            width = min(measure.width, max(0.0, self.width - self._end))
            self._add(token, start, text, width)
            self._closed = True
            return
        if self._breakable_before(measure):
            self._opportunity = self.pieces
        self._after_break = measure.breaks_after
        if measure.blank:
            self._add(token, start, text, min(measure.width, max(0.0, self.width - self._end)))
        elif self._end + measure.width <= self.width:
            self._add(token, start, text, measure.width)
        else:
            self._place_in_new_row(token, start, text, small, measure)

    def _breakable_before(self, measure: Measure) -> bool:
        return self.pieces > self._row_starts[-1] and (
            measure.breaks_before or (self._after_break and not measure.clings)
        )

    def _place_in_new_row(self, token: int, start: int, text: str, small: bool, measure: Measure) -> None:
        """Break the open row at its last opportunity, else here, and place the piece after it."""
        here = self.pieces
        if self._opportunity > self._row_starts[-1]:
            self._open_row(self._opportunity)
        elif here > self._row_starts[-1]:
            self._open_row(here)
        at_start = here == self._row_starts[-1]
        visible = measure.width - (measure.lead if at_start else 0.0)
        if self._end + visible <= self.width:
            if at_start:
                self._end = -measure.lead
            self._add(token, start, text, measure.width)
        elif not at_start:
            self._open_row(here)
            self._place_in_new_row(token, start, text, small, measure)
        else:
            self._split(token, start, text, small)

    def _split(self, token: int, start: int, text: str, small: bool) -> None:
        """Place a piece that is wider than a row: row after row, at least one character in each."""
        while text:
            if self.pieces > self._row_starts[-1]:
                self._open_row(self.pieces)
            count, width = self._fitting(text, small)
            self._add(token, start, text[:count], min(self.width, width))
            start, text = start + count, text[count:]

    def _fitting(self, text: str, small: bool) -> tuple[int, float]:
        """How many characters of `text` fit in a row (at least one), and their width."""
        low, high = 1, 2
        while high < len(text) and self._measure(text[:high], small).width <= self.width:
            low, high = high, 2 * high
        high = min(high, len(text))
        while low < high:
            middle = (low + high + 1) // 2
            if self._measure(text[:middle], small).width <= self.width:
                low = middle
            else:
                high = middle - 1
        return low, self._measure(text[:low], small).width

    def _open_row(self, first_piece: int) -> None:
        """Begin a new row with `first_piece`, moving the pieces from there on to its start."""
        self._row_starts.append(first_piece)
        self._opportunity = -1
        self._closed = False
        self._end = 0.0
        if first_piece < self.pieces:
            shift = self.x[first_piece] + self._lead_of(first_piece)
            for piece in range(first_piece, self.pieces):
                self.x[piece] -= shift
            self._end = self.x[-1] + self.piece_width[-1]

    def _lead_of(self, piece: int) -> float:
        text = self.text[piece]
        if not text[:1].isspace():
            return 0.0
        whole = self._measure(text, False)
        return whole.lead * (self.piece_width[piece] / whole.width if whole.width else 1.0)

    def _add(self, token: int, start: int, text: str, width: float) -> None:
        self.token.append(token)
        self.start.append(start)
        self.text.append(text)
        self.x.append(self._end)
        self.piece_width.append(width)
        self._end += width
