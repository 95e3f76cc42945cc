"""Predicted tokens per second by draft length, as a row of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.language import tr, trn
from app.theme import Theme
from app.widgets import small_font

if TYPE_CHECKING:
    from engine import Prediction

_BARS_H = 52
_APART = 5
"""Pixels between the numbers of two bars, at least; where there is no room for that, every other is left out."""


class SpeedBars(QWidget):
    """The best length stands out by colour and carries its number."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._predictions: Sequence[Prediction] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Predicted tokens per second by drafts a round"))

    def show_predictions(self, predictions: Sequence[Prediction]) -> None:
        """Show these; the best one fills the height."""
        self._predictions = predictions
        self.setAccessibleDescription("; ".join(self.describe(p) for p in predictions))
        self.update()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def describe(self, prediction: Prediction) -> str:
        """One bar in words."""
        drafts, speed = prediction.draft_tokens, prediction.tokens_per_s
        return trn("{n} draft: {speed:.2f} tokens/s", "{n} drafts: {speed:.2f} tokens/s", drafts, speed=speed)

    def sizeHint(self) -> QSize:
        return QSize(320, _BARS_H + self._labels_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, _BARS_H + self._labels_height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self._predictions:
            index = min(int(event.pos().x() / self._step()), len(self._predictions) - 1)
            QToolTip.showText(event.globalPos(), self.describe(self._predictions[index]), self)
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def _labels_height(self) -> int:
        return QFontMetrics(small_font(self.font())).height() + 2

    def _step(self) -> float:
        return self.width() / max(1, len(self._predictions))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(small_font(self.font()))
        widest = max(
            (painter.fontMetrics().horizontalAdvance(str(p.draft_tokens)) for p in self._predictions), default=0
        )
        chosen = max(range(len(self._predictions)), key=lambda i: self._predictions[i].tokens_per_s, default=0)
        every = 1 if widest + _APART <= self._step() else 2
        best = self._predictions[chosen] if self._predictions else None
        for index, prediction in enumerate(self._predictions):
            most = best.tokens_per_s if best is not None else 0.0
            height = (_BARS_H - 2) * prediction.tokens_per_s / most if most > 0 else 0.0
            bar = QRectF(index * self._step() + 1, _BARS_H - height, min(self._step() - 3, 24), height)
            painter.fillRect(bar, QColor(self._theme.accent if prediction is best else self._theme.border_strong))
            if (index - chosen) % every:
                continue
            painter.setPen(QColor(self._theme.text if prediction is best else self._theme.muted))
            text = QRectF(bar.left() - 8, _BARS_H, bar.width() + 16, self._labels_height())
            painter.drawText(text, Qt.AlignmentFlag.AlignCenter, str(prediction.draft_tokens))
        painter.end()
