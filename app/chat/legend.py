"""The legend: each state's tint, shape and words, always in view."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.cells import CellKind
from app.chat.token_fonts import TokenFonts
from app.chat.token_marks import paint_sample
from app.chat.token_style import WORDS
from app.theme import Theme, current_theme

_SAMPLE = "token"
_GAP = 18
_PAD = 6


class Legend(QWidget):
    """One sample of every kind of token, wrapped to the width it is given."""

    def __init__(self, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme or current_theme()
        self._fonts = TokenFonts(self.font())
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Legend")
        self.setAccessibleDescription("; ".join(WORDS[kind] for kind in CellKind))

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
        return QSize(160, self.heightForWidth(self.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the samples with the transcript's own brush."""
        painter = QPainter(self)
        for kind, x, y in self._arrange(self.width()):
            metrics = self._fonts.small_metrics
            width = self._fonts.width(_SAMPLE, True)
            rect = QRectF(x, y + (self._row_height() - metrics.height()) / 2, width + 6, metrics.height())
            paint_sample(painter, self._fonts, self._theme, kind, _SAMPLE, rect)
            painter.setFont(self._fonts.small)
            painter.setPen(QColor(self._theme.muted))
            painter.drawText(QPointF(rect.right() + 6, rect.top() + metrics.ascent()), WORDS[kind])
        painter.end()

    def _row_height(self) -> float:
        return self._fonts.small_metrics.height() + _PAD

    def _item_width(self, kind: CellKind) -> float:
        return self._fonts.width(_SAMPLE, True) + 12 + self._fonts.width(WORDS[kind], True)

    def _arrange(self, width: float) -> list[tuple[CellKind, float, float]]:
        placed, x, y = [], 0.0, 0.0
        for kind in CellKind:
            item = self._item_width(kind)
            if x and x + item > width:
                x, y = 0.0, y + self._row_height()
            placed.append((kind, x, y))
            x += item + _GAP
        return placed
