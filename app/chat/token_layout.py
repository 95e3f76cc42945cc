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
from itertools import pairwise

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
    clings = bool(_NEVER_BEFORE.search(text))
    return Measure(
        width=width_of(text),
        lead=width_of(text[: len(text) - len(stripped)]) if len(stripped) < len(text) else 0.0,
        blank=not stripped and bool(text),
        breaks_before=bool(stripped) and not clings and bool(_BREAK_BEFORE.search(text)),
        breaks_after=bool(_BREAK_AFTER.search(text)),
        clings=clings,
    )


class TokenLayout:
    """Rows of pieces, none wider than `width`.

    `measure(text, small)` gives a string's measure in the font of tokens, or of ghosts where `small`. An empty text
    (a token in the middle of a character) has the width that `measure("", …)` gives it. Pieces are kept in columns:
    `token`, `text` and `x`; row r holds the pieces `row(r)`. A piece ends where the next one begins, or with its row.
    """

    def __init__(self, width: float, measure: Callable[[str, bool], Measure]) -> None:
        self.width = max(1.0, width)
        self._measure = measure
        self.token = array("L")
        self.text: list[str] = []
        self.x = array("d")
        self._starts: dict[int, int] = {}
        """Offset in its token's text, for pieces that do not begin their token."""
        self._row_starts = array("L", [0])
        self._row_ends = array("d")
        self._end = 0.0
        """Where the next piece goes, in the open row."""
        self._opportunity = 0
        """First piece after the last break opportunity; there is none in the open row if it is not beyond its start."""
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

    def tokens_from(self, index: int) -> list[int]:
        """The tokens whose first piece is in a row."""
        return [self.token[piece] for piece in self.row(index) if piece not in self._starts]

    def row_end(self, index: int) -> float:
        """The right edge of a row's last piece."""
        return self._row_ends[index] if index < len(self._row_ends) else self._end

    def spans(self, index: int) -> list[tuple[float, float]]:
        """Left and right edge of each piece of a row."""
        pieces = self.row(index)
        edges = [*self.x[pieces.start : pieces.stop], self.row_end(index)]
        return list(pairwise(edges))

    def start(self, piece: int) -> int:
        """Offset of a piece in its token's text."""
        return self._starts.get(piece, 0)

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
        measure, width = self._measure, self.width
        for token, text, small in tokens:
            if NEWLINE not in text:
                size = measure(text, small)
                if not (self._closed or size.blank) and self._end + size.width <= width:
                    # The common case of `_place`, without its calls: the piece fits.
                    if size.breaks_before or (self._after_break and not size.clings):
                        self._opportunity = len(self.text)
                    self._after_break = size.breaks_after
                    self.token.append(token)
                    self.text.append(text)
                    self.x.append(self._end)
                    self._end += size.width
                    continue
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
        if measure.breaks_before or (self._after_break and not measure.clings):
            self._opportunity = self.pieces
        self._after_break = measure.breaks_after
        if measure.blank:
            self._add(token, start, text, min(measure.width, max(0.0, self.width - self._end)))
            self._opportunity = self.pieces
        elif self._end + measure.width <= self.width:
            self._add(token, start, text, measure.width)
        else:
            self._place_in_new_row(token, start, text, small, measure)

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
        moved = first_piece < self.pieces
        self._row_ends.append(self.x[first_piece] if moved else self._end)
        self._row_starts.append(first_piece)
        self._closed = False
        if not moved:
            self._end = 0.0
            return
        shift = self.x[first_piece] + self._lead_of(first_piece)
        for piece in range(first_piece, self.pieces):
            self.x[piece] -= shift
        self._end -= shift

    def _lead_of(self, piece: int) -> float:
        """Width of the white space that a placed piece begins with."""
        text = self.text[piece]
        if not text[:1].isspace():
            return 0.0
        placed = (self.x[piece + 1] if piece + 1 < self.pieces else self._end) - self.x[piece]
        whole = self._measure(text, False)
        return whole.lead * placed / whole.width if whole.width else 0.0

    def _add(self, token: int, start: int, text: str, width: float) -> None:
        if start:
            self._starts[self.pieces] = start
        self.token.append(token)
        self.text.append(text)
        self.x.append(self._end)
        self._end += width
