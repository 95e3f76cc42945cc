"""The legend: each state's tint, shape and words, always in view."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.cells import CellKind
from app.chat.token_fonts import TokenFonts
from app.chat.token_marks import MarkBatch
from app.chat.token_style import CUES, SHORT_WORDS, WORDS, TokenStyle, token_styles
from app.language import mark, tr
from app.theme import Theme, current_theme

_SAMPLE = mark("token")
_GAP = 18
_PAD = 8
_INSET = 6


class Legend(QWidget):
    """One sample of every kind of token, wrapped to the width it is given."""

    def __init__(self, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme or current_theme()
        self._fonts = TokenFonts(self.font())
        self._sample = tr(_SAMPLE)
        self._words = {kind: tr(SHORT_WORDS[kind]) for kind in CellKind}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName(tr("Legend"))
        self.setAccessibleDescription("; ".join(f"{tr(CUES[kind].value)}: {tr(WORDS[kind])}" for kind in CellKind))
        self.setToolTip("\n".join(f"{self._words[kind]}: {tr(WORDS[kind])}" for kind in CellKind))

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        self.update()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the font."""
        if event.type() == QEvent.Type.FontChange:
            self._fonts = TokenFonts(self.font())
            self.updateGeometry()
        super().changeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrower legend has more rows."""
        height = self.heightForWidth(event.size().width())
        if self.minimumHeight() != height:
            self.setMinimumHeight(height)
            self.setMaximumHeight(height)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        """Height of all samples wrapped to `width`."""
        rows = self._arrange(width)
        return round(max((y for _, _, y in rows), default=0.0) + self._row_height() + _PAD / 2)

    def sizeHint(self) -> QSize:
        width = round(sum(self._item_width(kind) + _GAP for kind in CellKind))
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        widest = max(map(self._item_width, CellKind))
        return QSize(math.ceil(widest), self.heightForWidth(self.width()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the samples with the transcript's own brush."""
        painter = QPainter(self)
        painter.setFont(self._fonts.small)
        styles = token_styles(self._theme)
        metrics = self._fonts.small_metrics
        width = self._fonts.width(self._sample, True) + _INSET
        for kind, x, y in self._arrange(self.width()):
            rect = QRectF(x, y + (self._row_height() - metrics.height()) / 2, width, metrics.height() + 1)
            self._paint_sample(painter, kind, styles, rect)
            painter.setPen(QColor(self._theme.muted))
            painter.drawText(QPointF(rect.right() + _INSET, rect.top() + metrics.ascent()), self._words[kind])
        painter.end()

    def _paint_sample(
        self, painter: QPainter, kind: CellKind, styles: dict[CellKind, TokenStyle], rect: QRectF
    ) -> None:
        metrics = self._fonts.small_metrics
        baseline = rect.top() + metrics.ascent()
        batch = MarkBatch(styles)
        batch.add(kind, rect.left(), rect.top(), rect.right(), rect.bottom())
        if kind.ghost:
            batch.strike(kind, rect.left(), rect.right(), baseline - metrics.xHeight() / 2)
        batch.draw_grounds(painter)
        painter.setPen(styles[kind].text)
        painter.drawText(QPointF(rect.left() + _INSET / 2, baseline), self._sample)
        batch.draw_strikes(painter)

    def _row_height(self) -> float:
        return self._fonts.small_metrics.height() + _PAD

    def _item_width(self, kind: CellKind) -> float:
        return self._fonts.width(self._sample, True) + 2 * _INSET + self._fonts.width(self._words[kind], True)

    def _arrange(self, width: float) -> list[tuple[CellKind, float, float]]:
        placed, x, y = [], 0.0, 0.0
        for kind in CellKind:
            item = self._item_width(kind)
            if x and x + item > width:
                x, y = 0.0, y + self._row_height()
            placed.append((kind, x, y))
            x += item + _GAP
        return placed
