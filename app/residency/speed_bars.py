"""Predicted tokens per second by draft length, as a row of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.language import tr, trn
from app.theme import Theme

if TYPE_CHECKING:
    from engine import Prediction

_BARS_H, _LABELS_H = 52, 16


class SpeedBars(QWidget):
    """The best length stands out by colour and carries its number."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._predictions: Sequence[Prediction] = ()
        self.setFixedHeight(_BARS_H + _LABELS_H)
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
        return QSize(320, self.height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self._predictions:
            index = min(int(event.pos().x() / self._step()), len(self._predictions) - 1)
            QToolTip.showText(event.globalPos(), self.describe(self._predictions[index]), self)
            return True
        return super().event(event)

    def _step(self) -> float:
        return self.width() / max(1, len(self._predictions))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        best = max(self._predictions, key=lambda p: p.tokens_per_s, default=None)
        for index, prediction in enumerate(self._predictions):
            most = best.tokens_per_s if best is not None else 0.0
            height = (_BARS_H - 2) * prediction.tokens_per_s / most if most > 0 else 0.0
            bar = QRectF(index * self._step() + 1, _BARS_H - height, min(self._step() - 3, 24), height)
            painter.fillRect(bar, QColor(self._theme.accent if prediction is best else self._theme.border_strong))
            painter.setPen(QColor(self._theme.text if prediction is best else self._theme.muted))
            text = QRectF(bar.left() - 4, _BARS_H, bar.width() + 8, _LABELS_H)
            painter.drawText(text, Qt.AlignmentFlag.AlignCenter, str(prediction.draft_tokens))
        painter.end()
