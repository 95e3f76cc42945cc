"""Draws the marks of tokens' states: ground, underline, notch, plus, strike. Transcript and legend share them."""

from __future__ import annotations

from collections import defaultdict

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from app.chat.cells import KINDS, CellKind
from app.chat.token_style import Cue, TokenStyle

_LINE = 2.0
_NOTCH = 5.5
_PLUS = 2.5
_STRIKE = 1.4


class MarkBatch:
    """Marks of many tokens, collected first and drawn with a few calls: one per kind, not one per token."""

    def __init__(self, styles: dict[CellKind, TokenStyle]) -> None:
        self._styles = [styles[kind] for kind in KINDS]
        self._grounds: defaultdict[int, list[QRectF]] = defaultdict(list)
        self._fills: defaultdict[int, list[QRectF]] = defaultdict(list)
        self._lines: defaultdict[int, list[QLineF]] = defaultdict(list)
        self._strikes: defaultdict[int, list[QLineF]] = defaultdict(list)
        self._notches: defaultdict[int, list[QPolygonF]] = defaultdict(list)

    def add(self, kind: CellKind, left: float, top: float, right: float, bottom: float, *, last: bool = True) -> None:
        """Ground and cue of one piece of a token; `last` if the token ends with it."""
        style = self._styles[kind]
        cue = style.cue
        if style.tint is not None:
            self._grounds[kind].append(QRectF(left + 0.5, top, right - left - 1, bottom - top))
        if cue is Cue.SOLID:
            self._fills[kind].append(QRectF(left + 0.5, bottom - _LINE, right - left - 1, _LINE))
        elif cue is Cue.DOTTED:
            x = left + 1
            while x + _LINE <= right:
                self._fills[kind].append(QRectF(x, bottom - _LINE, _LINE, _LINE))
                x += 2 * _LINE
        elif cue is Cue.NOTCH:
            self._add_notch(kind, left + 0.5, top, bottom)
        elif cue is Cue.PLUS and last:
            x, y = right - 3, top - 1
            self._lines[kind] += (QLineF(x - _PLUS, y, x + _PLUS, y), QLineF(x, y - _PLUS, x, y + _PLUS))

    def strike(self, kind: CellKind, left: float, right: float, y: float) -> None:
        """The line through a ghost: solid for a refused draft, dots for one that was never tested."""
        self._strikes[kind].append(QLineF(left + 1, y, right - 1, y))

    def draw_grounds(self, painter: QPainter) -> None:
        """Everything that lies behind the text."""
        painter.setPen(Qt.PenStyle.NoPen)
        for kind, rects in self._grounds.items():
            painter.setBrush(self._styles[kind].tint or QColor())
            painter.drawRects(rects)
        for kind, rects in self._fills.items():
            painter.setBrush(self._styles[kind].mark)
            painter.drawRects(rects)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for kind, lines in self._lines.items():
            painter.setPen(QPen(self._styles[kind].mark, 1))
            painter.drawLines(lines)
        for kind, notches in self._notches.items():
            self._draw_notches(painter, kind, notches)

    def draw_strikes(self, painter: QPainter) -> None:
        """Everything that lies over the text."""
        for kind, lines in self._strikes.items():
            style = self._styles[kind]
            pen = QPen(style.mark, _STRIKE)
            if style.cue is Cue.DOTTED_STRIKE:
                pen.setDashPattern([1.5, 2.0])
            painter.setPen(pen)
            painter.drawLines(lines)

    def _add_notch(self, kind: int, left: float, top: float, bottom: float) -> None:
        """A folded corner at the top left, and a thin edge below it: the text was changed from here."""
        self._fills[kind].append(QRectF(left, top, 1, bottom - top))
        corners = [QPointF(left, top), QPointF(left + _NOTCH, top), QPointF(left, top + _NOTCH), QPointF(left, top)]
        self._notches[kind].append(QPolygonF(corners))

    def _draw_notches(self, painter: QPainter, kind: int, notches: list[QPolygonF]) -> None:
        path = QPainterPath()
        for notch in notches:
            path.addPolygon(notch)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.fillPath(path, self._styles[kind].mark)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
