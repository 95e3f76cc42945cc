"""Draws the marks of a token's state: ground, underline, notch, plus, strike. Transcript and legend share them."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from app.chat.cells import CellKind
from app.chat.token_fonts import TokenFonts
from app.chat.token_style import Cue, TokenStyle, token_styles
from app.theme import Theme


def paint_cue(painter: QPainter, style: TokenStyle, rect: QRectF, *, last: bool = True) -> None:
    """Ground and cue of one piece of a token; `last` if the token ends with it."""
    if style.tint is not None:
        painter.fillRect(rect.adjusted(0.5, 0, -0.5, 0), style.tint)
    if style.cue is Cue.SOLID:
        painter.fillRect(QRectF(rect.left() + 0.5, rect.bottom() - 2, rect.width() - 1, 2), style.mark)
    elif style.cue is Cue.DOTTED:
        x = rect.left() + 1
        while x + 2 <= rect.right():
            painter.fillRect(QRectF(x, rect.bottom() - 2, 2, 2), style.mark)
            x += 4
    elif style.cue is Cue.NOTCH:
        painter.fillRect(QRectF(rect.left() + 0.5, rect.top(), 2.5, rect.height()), style.mark)
    elif style.cue is Cue.PLUS and last:
        centre = QPointF(rect.right() - 3, rect.top() + 1)
        painter.setPen(QPen(style.mark, 1))
        painter.drawLine(QLineF(centre.x() - 2.5, centre.y(), centre.x() + 2.5, centre.y()))
        painter.drawLine(QLineF(centre.x(), centre.y() - 2.5, centre.x(), centre.y() + 2.5))


def paint_strike(painter: QPainter, style: TokenStyle, left: float, right: float, y: float) -> None:
    """The line through a ghost: solid for a refused draft, dots for one that was never tested."""
    pen = QPen(style.mark, 1.4)
    if style.cue is Cue.DOTTED_STRIKE:
        pen.setDashPattern([1.5, 2.0])
    painter.setPen(pen)
    painter.drawLine(QLineF(left + 1, y, right - 1, y))


def paint_sample(
    painter: QPainter, fonts: TokenFonts, theme: Theme, kind: CellKind, text: str, rect: QRectF
) -> None:
    """One token on its own, in the small font: the legend's swatch."""
    style = token_styles(theme)[kind]
    metrics = fonts.small_metrics
    paint_cue(painter, style, rect)
    painter.setFont(fonts.small)
    painter.setPen(QColor(style.text))
    baseline = rect.top() + metrics.ascent()
    left = rect.left() + (rect.width() - fonts.width(text, True)) / 2
    painter.drawText(QPointF(left, baseline), text)
    if kind.ghost:
        paint_strike(painter, style, rect.left() + 1, rect.right() - 1, baseline - metrics.xHeight() / 2)
