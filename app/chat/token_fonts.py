"""Fonts of the transcript, and what they say about the width of a string."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPainter,
    QStaticText,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)

from app.chat.token_layout import NEWLINE, Measure, measured

NEWLINE_SIGN = "↵"
HALF_CHARACTER_WIDTH = 4.0
"""Width of a token that ends in the middle of a character."""
COLUMN_CHARACTERS = 76
_CACHED_LENGTH = 64
_CACHE_SIZE = 200_000
_GLYPHS_SIZE = 20_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_COMPLEX = re.compile(
    r"[\u0300-\u036f\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u200d-\u200f\u202a-\u202e\u2066-\u2069"
    r"\ufb1d-\ufdff\ufe0f\ufe70-\ufeff\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]"
)
"""Scripts and signs whose glyphs depend on their neighbours, or that run from right to left."""


def shown(text: str) -> str:
    """The text as it is drawn: tabs as spaces, newlines and control characters as signs."""
    if text == NEWLINE:
        return NEWLINE_SIGN
    text = text.replace("\t", "    ")
    return _CONTROL.sub(lambda match: chr(0x2400 + ord(match.group())) if match.group() != "\x7f" else "␡", text)


def column_width(font: QFont) -> int:
    """Width of the column in which conversations are set: a line that the eye can follow back."""
    return round(QFontMetricsF(font).horizontalAdvance("0") * COLUMN_CHARACTERS)


class TokenFonts:
    """The reading font and a smaller one for ghosts and notes, with a cache of measures."""

    def __init__(self, font: QFont) -> None:
        self.body = QFont(font)
        self.body.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
        self.small = QFont(self.body)
        self.small.setPointSizeF(max(6.0, self.body.pointSizeF() * 0.86))
        self.label = QFont(self.small)
        self.label.setWeight(QFont.Weight.DemiBold)
        self.metrics = QFontMetricsF(self.body)
        self.small_metrics = QFontMetricsF(self.small)
        self._cache: dict[tuple[str, bool], Measure] = {}
        self._glyphs: dict[tuple[str, bool], QStaticText] = {}

    def width(self, text: str, small: bool) -> float:
        """Width of a string as drawn."""
        metrics = self.small_metrics if small else self.metrics
        return metrics.horizontalAdvance(shown(text))

    def measure(self, text: str, small: bool) -> Measure:
        """The measure of a string, for the layout."""
        known = self._cache.get((text, small))
        if known is not None:
            return known
        if text:
            result = measured(text, lambda part: self.width(part, small))
        else:
            result = Measure(HALF_CHARACTER_WIDTH, 0.0, False, False, False, False)
        if len(text) <= _CACHED_LENGTH:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[text, small] = result
        return result

    def draw(self, painter: QPainter, x: float, baseline: float, text: str, small: bool) -> None:
        """Draw a string in the painter's colour; its glyphs are kept, as most tokens come again and again."""
        glyphs = self._glyphs.get((text, small))
        font = self.small if small else self.body
        if glyphs is None:
            glyphs = QStaticText(shown(text))
            glyphs.setTextFormat(Qt.TextFormat.PlainText)
            glyphs.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
            if len(self._glyphs) >= _GLYPHS_SIZE:
                self._glyphs.clear()
            if len(text) <= _CACHED_LENGTH:
                self._glyphs[text, small] = glyphs
        painter.setFont(font)
        metrics = self.small_metrics if small else self.metrics
        painter.drawStaticText(QPointF(x, baseline - metrics.ascent()), glyphs)

    def shape(self, texts: Sequence[str], smalls: Sequence[bool]) -> list[tuple[float, float]] | None:
        """Edges of each piece in a row that needs shaping as a whole; None if it does not."""
        if all(text.isascii() or not _COMPLEX.search(text) for text in texts):
            return None
        layout = self.shaped_row(texts, smalls)
        line = layout.lineAt(0)
        spans, position = [], 0
        for text in texts:
            length = _utf16(_in_row(text))
            runs = [run.boundingRect() for run in line.glyphRuns(position, length)] if length else []
            here = _x(line.cursorToX(position))
            spans.append(_widest(sorted((run.left(), run.right()) for run in runs)) or (here, here))
            position += length
        return spans

    def shaped_row(self, texts: Sequence[str], smalls: Sequence[bool]) -> QTextLayout:
        """A row as one laid-out line, with ghosts in the small font."""
        layout = QTextLayout("".join(_in_row(text) for text in texts), self.body)
        option = QTextOption(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute)
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        layout.setTextOption(option)
        ranges, position = [], 0
        for text, small in zip(texts, smalls, strict=True):
            length = _utf16(_in_row(text))
            if small:
                piece = QTextLayout.FormatRange()
                piece.start, piece.length = position, length
                piece.format = QTextCharFormat()
                piece.format.setFont(self.small)
                ranges.append(piece)
            position += length
        layout.setFormats(ranges)
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(1e6)
        line.setPosition(QPointF(0, 0))
        layout.endLayout()
        return layout


def _widest(stretches: list[tuple[float, float]]) -> tuple[float, float] | None:
    """The widest of the stretches, those that touch taken as one: where directions meet, a space may lie apart."""
    joined: list[tuple[float, float]] = []
    for left, right in stretches:
        if joined and left <= joined[-1][1] + 0.5:
            joined[-1] = joined[-1][0], max(right, joined[-1][1])
        else:
            joined.append((left, right))
    return max(joined, key=lambda stretch: stretch[1] - stretch[0], default=None)


def _in_row(text: str) -> str:
    """A text as part of a shaped row, where a newline's sign is drawn on its own."""
    return " " if text == NEWLINE else shown(text)


def _utf16(text: str) -> int:
    """Length as Qt counts it."""
    return len(text) + sum(ord(c) > 0xFFFF for c in text)


def _x(edge: object) -> float:
    """`cursorToX` gives a number, or a pair of number and cursor position, depending on the binding's version."""
    return float(edge[0] if isinstance(edge, tuple) else edge)  # type: ignore[arg-type]
