"""The residency strip: a cell for each unit of the weights, in the order in which a pass uses them."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFocusEvent, QHelpEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.language import tr
from app.residency.glance import WORDS, Glance, summary
from app.theme import Theme

CELL_W, CELL_H, GAP = 14, 22, 3
_MARK = 5
"""Height of the mark under the layer that is being computed."""


class Strip(QWidget):
    """Takes glances at any rate and repaints when something changed. Arrow keys walk over the cells."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._glance = Glance()
        self._details: Mapping[str, str] = {}
        self._chosen = 0
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._say()

    @property
    def glance(self) -> Glance:
        return self._glance

    def show_glance(self, glance: Glance) -> None:
        """Show where the units are now."""
        before, self._glance = self._glance, glance
        if (before.units, before.layer) == (glance.units, glance.layer):
            return
        if before.units.keys() != glance.units.keys():
            self._chosen = 0
            self.updateGeometry()
            self.setMinimumHeight(self.heightForWidth(max(self.width(), CELL_W)))
        self._say()
        self.update()

    def show_details(self, details: Mapping[str, str]) -> None:
        """What more is known of each unit (its size, how often it is used), for tooltips."""
        self._details = details
        self._say()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def describe(self, unit: str) -> str:
        """A unit in words."""
        now = tr("being computed") if unit == self._glance.current() else ""
        known = tr(WORDS[self._glance.units[unit]]), now, self._details.get(unit, "")
        return f"{unit_name(unit)}: {', '.join(filter(None, known))}"

    # Geometry

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        rows = -(-max(1, len(self._glance.units)) // self._columns(width))
        return rows * (CELL_H + _MARK + GAP)

    def sizeHint(self) -> QSize:
        return QSize(40 * CELL_W, self.heightForWidth(max(self.width(), 20 * CELL_W)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.setMinimumHeight(self.heightForWidth(self.width()))

    def cell(self, index: int) -> QRect:
        """Where the cell of a unit is."""
        row, column = divmod(index, self._columns(self.width()))
        return QRect(column * (CELL_W + GAP) + 1, row * (CELL_H + _MARK + GAP) + 1, CELL_W, CELL_H)

    def _columns(self, width: int) -> int:
        return max(1, width // (CELL_W + GAP))

    def _unit_at(self, point: QPoint) -> str:
        hit = (unit for i, unit in enumerate(self._glance.units) if self.cell(i).contains(point))
        return next(hit, "")

    # Looking and walking

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            unit = self._unit_at(event.pos())
            QToolTip.showText(event.globalPos(), self.describe(unit) if unit else "", self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Home: -(10**6), Qt.Key.Key_End: 10**6}
        if event.key() not in steps or not self._glance.units:
            super().keyPressEvent(event)
            return
        self._chosen = min(max(0, self._chosen + steps[Qt.Key(event.key())]), len(self._glance.units) - 1)
        self._say()
        self.update()
        unit = list(self._glance.units)[self._chosen]
        QToolTip.showText(self.mapToGlobal(self.cell(self._chosen).bottomLeft()), self.describe(unit), self)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def _say(self) -> None:
        self.setAccessibleName(tr("Where the weights are"))
        units = list(self._glance.units)
        here = f" {self.describe(units[self._chosen])}." if units else ""
        self.setAccessibleDescription(summary(self._glance) + here)

    # Painting

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        current = self._glance.current()
        for index, (unit, state) in enumerate(self._glance.units.items()):
            cell = self.cell(index)
            paint_cell(painter, cell, state, self._theme)
            if unit == current:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(self._theme.text))
                painter.drawRect(QRect(cell.left(), cell.bottom() + 2, cell.width(), 3))
            if self.hasFocus() and index == self._chosen:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(self._theme.accent), 2))
                painter.drawRect(cell.adjusted(-1, -1, 0, 0))
        painter.end()


def paint_cell(painter: QPainter, cell: QRect, state: str, theme: Theme) -> None:
    """One unit: its state by colour, and by filling as a second cue."""
    edge = {"resident": theme.accent, "ring": theme.accent, "reading": theme.disk, "disk": theme.border_strong}[state]
    inner = cell.adjusted(1, 1, -1, -1)
    painter.fillRect(cell, QColor(edge))  # fills, not strokes: those would be blurred between the pixels of some scales
    if state != "resident":
        painter.fillRect(inner, QColor(theme.surface))
    if state == "ring":
        painter.fillRect(inner.adjusted(0, inner.height() // 2, 0, 0), QColor(theme.accent))
    elif state == "reading":
        painter.fillRect(inner, QBrush(QColor(theme.disk), Qt.BrushStyle.BDiagPattern))


def unit_name(unit: str) -> str:
    """The engine's name of a unit, for people."""
    kind, _, number = unit.partition(".")
    if kind == "layers" and number:
        return tr("Layer {number}", number=int(number) + 1)
    names = {"layers": tr("Layer"), "head": tr("Head"), "mtp": tr("MTP layer"), "draft_head": tr("Draft head")}
    name = names.get(kind, unit)
    return tr("{name}, piece {number}", name=name, number=int(number) + 1) if number else name
