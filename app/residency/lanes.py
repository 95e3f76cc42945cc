"""Lanes for disk, drafting and verifying: what each did over the newest rounds, on one time line."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.language import mark, tr
from app.residency.lanes_model import LanesModel, Lap
from app.theme import Theme
from app.widgets import small_font

LANES = (mark("Disk"), mark("Draft"), mark("Verify"))
_LANE_H, _GAP = 18, 6
"""Of a lane at least: it is as high as the text beside it."""
_LEFT = 52
"""Room for the names, at least."""


class Lanes(QWidget):
    """Repaints in `refresh`, and then only if there are new rounds."""

    def __init__(self, model: LanesModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme = theme
        self._drawn = -1
        self._lane = max(_LANE_H, QFontMetrics(small_font(self.font())).height())
        self._left = _LEFT
        """Where the lanes begin, right of their names."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Disk, draft and verify over the last rounds"))
        self.refresh()

    def refresh(self) -> None:
        """Show what came since the last time."""
        if self._drawn != self._model.version:
            self._drawn = self._model.version
            self.setAccessibleDescription(self._model.summary())
            self.update()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(320, self._height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._lane = max(_LANE_H, QFontMetrics(small_font(self.font())).height())
            self.updateGeometry()

    def _height(self) -> int:
        """Three lanes, and the axis below them."""
        return 3 * (self._lane + _GAP) + self._lane

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            lap = self.lap_at(event.pos())
            QToolTip.showText(event.globalPos(), lap.sentence() if lap else "", self)
            return True
        return super().event(event)

    def lap_at(self, point: QPoint) -> Lap | None:
        """The round under a point."""
        return next((lap for lap in self._model.laps if self._x(lap.begin) <= point.x() < self._x(lap.end)), None)

    def _span(self) -> tuple[float, float]:
        laps = self._model.laps
        return (laps[0].begin, max(laps[-1].end, laps[0].begin + 1e-6)) if laps else (0.0, 1.0)

    def _x(self, seconds: float) -> float:
        begin, end = self._span()
        return self._left + (self.width() - self._left - 2) * (seconds - begin) / (end - begin)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(small_font(self.font()))
        theme = self._theme
        names = [tr(name) for name in LANES]
        left = self._left = max(_LEFT, 8 + max(map(painter.fontMetrics().horizontalAdvance, names)))
        for row, name in enumerate(names):
            top = row * (self._lane + _GAP)
            painter.setPen(QColor(theme.muted))
            middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
            painter.drawText(QRectF(0, top, left - 6, self._lane), middle, name)
            painter.fillRect(QRectF(left, top, self.width() - left - 2, self._lane), QColor(theme.sunken))
        for lap in self._model.laps:
            self._paint_lap(painter, lap)
        self._paint_axis(painter)
        painter.end()

    def _paint_lap(self, painter: QPainter, lap: Lap) -> None:
        theme = self._theme
        drafted = lap.begin + lap.draft_s + lap.draft_wait_s
        self._bar(painter, 0, lap.begin, lap.begin + lap.read_s, theme.disk)
        self._bar(painter, 1, lap.begin, lap.begin + lap.draft_s, theme.draft)
        self._wait(painter, 1, lap.begin + lap.draft_s, drafted)
        self._bar(painter, 2, drafted, drafted + lap.verify_s, theme.verify)
        self._wait(painter, 2, drafted + lap.verify_s, lap.end)
        painter.setPen(QPen(QColor(theme.border_strong), 1, Qt.PenStyle.DotLine))
        x = round(self._x(lap.begin))
        painter.drawLine(x, 0, x, 3 * (self._lane + _GAP) - _GAP)

    def _rect(self, lane: int, begin: float, end: float) -> QRectF:
        left, right = self._x(begin), self._x(end)
        return QRectF(left, lane * (self._lane + _GAP), max(right - left, 0.0), self._lane)

    def _bar(self, painter: QPainter, lane: int, begin: float, end: float, colour: str) -> None:
        painter.fillRect(self._rect(lane, begin, end), QColor(colour))

    def _wait(self, painter: QPainter, lane: int, begin: float, end: float) -> None:
        """Waiting for the disk: hatched in the disk's colour, in the lane of the one who waits."""
        painter.fillRect(self._rect(lane, begin, end), QBrush(QColor(self._theme.disk), Qt.BrushStyle.BDiagPattern))

    def _paint_axis(self, painter: QPainter) -> None:
        begin, end = self._span()
        if not self._model.laps:
            return
        top = 3 * (self._lane + _GAP) - 2
        area = QRectF(self._left, top, self.width() - self._left - 2, self._lane)
        laps = self._model.laps
        first, last = laps[0].number, laps[-1].number
        rounds = tr("rounds {first}…{last}", first=first, last=last) if last > first else tr("round {last}", last=last)
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, rounds)
        painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{end - begin:.1f} s")
