"""Draws the marks of a token's state: ground, underline, notch, plus, strike. Transcript and legend share them."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainter, QPen, QPolygonF

from app.chat.token_style import Cue, TokenStyle

_LINE = 2.0
_NOTCH = 7.0
_PLUS = 2.5


def paint_cue(painter: QPainter, style: TokenStyle, rect: QRectF, *, last: bool = True) -> None:
    """Ground and cue of one piece of a token; `last` if the token ends with it."""
    if style.tint is not None:
        painter.fillRect(rect.adjusted(0.5, 0, -0.5, 0), style.tint)
    if style.cue is Cue.SOLID:
        painter.fillRect(QRectF(rect.left() + 0.5, rect.bottom() - _LINE, rect.width() - 1, _LINE), style.mark)
    elif style.cue is Cue.DOTTED:
        x = rect.left() + 1
        while x + _LINE <= rect.right():
            painter.fillRect(QRectF(x, rect.bottom() - _LINE, _LINE, _LINE), style.mark)
            x += 2 * _LINE
    elif style.cue is Cue.NOTCH:
        _paint_notch(painter, style, rect)
    elif style.cue is Cue.PLUS and last:
        x, y = rect.right() - 3, rect.top() - 1
        painter.setPen(QPen(style.mark, 1))
        painter.drawLine(QLineF(x - _PLUS, y, x + _PLUS, y))
        painter.drawLine(QLineF(x, y - _PLUS, x, y + _PLUS))


def paint_strike(painter: QPainter, style: TokenStyle, left: float, right: float, y: float) -> None:
    """The line through a ghost: solid for a refused draft, dots for one that was never tested."""
    pen = QPen(style.mark, 1.4)
    if style.cue is Cue.DOTTED_STRIKE:
        pen.setDashPattern([1.5, 2.0])
    painter.setPen(pen)
    painter.drawLine(QLineF(left + 1, y, right - 1, y))


def _paint_notch(painter: QPainter, style: TokenStyle, rect: QRectF) -> None:
    """A folded corner at the top left, and a thin edge below it: the text was changed from here."""
    left, top = rect.left() + 0.5, rect.top()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(style.mark, 0))
    painter.setBrush(style.mark)
    painter.drawPolygon(QPolygonF([QPointF(left, top), QPointF(left + _NOTCH, top), QPointF(left, top + _NOTCH)]))
    painter.restore()
    painter.fillRect(QRectF(left, top, 1, rect.height()), style.mark)
