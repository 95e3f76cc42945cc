"""A plot with its title, its key, its empty state, and export. What all plots of the inspector share."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QRect, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QPainter,
    QPen,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QVBoxLayout,
    QWidget,
)

from app.flow import FlowRow
from app.inspector.rounds_model import SHOWN_ROUNDS
from app.language import mark, tr
from app.saving import place_of
from app.theme import Theme

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""Column names, and rows."""

PLOT_HEIGHT, LEFT_WIDTH = 148, 52
USUAL_LINE = 16
"""Height of a line of text for which these suffice."""
_HYSTERESIS = 0.55
_ROUND_STEP = 10
_FULL_STEP = 40
"""Rounds by which the axis moves while few, and once the plot is full: many rounds come between two drawings then."""


class _StillPlot(pg.PlotWidget):  # type: ignore[misc]
    """A plot that is looked at, not moved: the wheel scrolls the panel around it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def sizeHint(self) -> QSize:
        return QSize(240, PLOT_HEIGHT)


class PlotCard(QWidget):
    """Base of the plots: subclasses fill `plot` and say what it means, in texts that are marked for translation."""

    title = ""
    x_label = ""
    y_label = ""
    y_unit = ""
    reading = ""
    """How to read the plot, in one line."""
    reading_values: ClassVar[Mapping[str, object]] = {}
    """What its fields stand for."""
    empty = mark("Fills while a reply is written")

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._top = 0.0
        self._end = 0.0
        self.widget = _StillPlot()
        self.plot = self.widget.getPlotItem()
        self._set_up_plot()
        self._empty = QLabel(tr(self.empty))
        self._empty.setProperty("type", "caption")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._key = QLabel()
        self._key.setProperty("type", "caption")
        self._key.setTextFormat(Qt.TextFormat.RichText)
        self._lay_out()
        self.setToolTip(tr(self.reading, **self.reading_values))
        self.widget.setAccessibleName(tr(self.title))
        self.setAccessibleName(tr(self.title))
        self.show_empty(True)

    # For subclasses

    def table(self) -> Table:
        """The data that is shown."""
        raise LookupError(f"{type(self).__name__} has no table")  # not translated: a mistake of the program

    def key(self) -> Sequence[tuple[str, str]]:
        """Colours and what they stand for."""
        return ()

    def paint_in(self, theme: Theme) -> None:
        """Give the plot's items their colours."""

    # For the panel

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        self.widget.setBackground(theme.surface)
        for name in ("left", "bottom"):
            axis = self.plot.getAxis(name)
            axis.setPen(pg.mkPen(theme.border))
            axis.setTickPen(pg.mkPen(theme.border))
            axis.setTextPen(pg.mkPen(theme.muted))
            axis.setTickFont(_caption(self.font()))
            axis.label.setDefaultTextColor(pg.mkColor(theme.muted))
            axis.label.setFont(self.font())
        self.fit_font()
        self.setStyleSheet(
            f'QLabel {{ color: {theme.text}; }} QLabel[type="caption"] {{ color: {theme.muted}; }}'
            f" #plotEmpty {{ background: {theme.surface}; }}"
            f" QComboBox {{ font-size: {_caption(self.font()).pointSizeF():.1f}pt; padding: 0 6px; min-height: 20px; }}"
            " QComboBox::drop-down { width: 18px; }"  # not translated: CSS
        )
        self.show_key()
        self.paint_in(theme)

    def fit_font(self) -> None:
        """Keep room for what is written at the axes; the font may have changed."""
        body, ticks = self.fontMetrics(), QFontMetrics(_caption(self.font()))
        self.plot.setContentsMargins(0, max(4, ticks.height() // 2 - 2), 14, 0)  # half of a label at an axis's end
        self.plot.getAxis("left").setWidth(max(LEFT_WIDTH, ticks.horizontalAdvance("0000") + body.height() + 8))
        self.widget.setMinimumHeight(PLOT_HEIGHT + 3 * max(0, body.height() - USUAL_LINE))

    def fine_pen(self, colour: str) -> QPen:
        """For whiskers and other lines that are few: as thin as can be seen, on sharp screens too."""
        pen: QPen = pg.mkPen(colour, width=max(1, round(self.devicePixelRatioF())))
        return pen

    def show_key(self) -> None:
        """Say what the colours mean."""
        text = " &nbsp;".join(
            f'<span style="color:{colour}">■</span>&nbsp;{words}'  # not translated: markup
            for colour, words in self.key()
        )
        if text != self._key.text():
            self._key.setText(text)

    def show_empty(self, empty: bool) -> None:
        """Show the plot, or why there is none."""
        self._empty.setVisible(empty)
        if empty:
            self.describe(tr("No data yet."))

    def describe(self, summary: str) -> None:
        """Say in words what the plot shows, for screen readers."""
        self.setAccessibleDescription(summary)
        self.widget.setAccessibleDescription(summary)

    def fit_rounds(self, last: float) -> None:
        """Let the axis end after round `last`. It moves in steps: drawing an axis anew costs more than bars."""
        step = _ROUND_STEP if last < SHOWN_ROUNDS else _FULL_STEP
        end = max(20.0, math.ceil(last / step) * step)
        if end != self._end:
            self._end = end
            self.plot.setXRange(max(0.0, end - SHOWN_ROUNDS) + 0.5, end + 0.5, padding=0)

    def fit_height(self, highest: float) -> None:
        """Let the axis end a little above `highest`; it follows down only when much would be empty."""
        if highest > self._top or highest < _HYSTERESIS * self._top:
            self._top = 1.15 * highest if highest > 0 else 1.0
            self.plot.setYRange(0, self._top, padding=0)

    # Export

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Save or copy."""
        menu = self.export_menu()
        menu.exec(event.globalPos())

    def export_menu(self) -> QMenu:
        """The menu that saves the plot or its numbers."""
        menu = QMenu(self)
        for kind in ("PNG", "SVG", "CSV"):
            words = tr("Save numbers as CSV…") if kind == "CSV" else tr("Save picture as {kind}…", kind=kind)
            menu.addAction(words).triggered.connect(lambda _=False, kind=kind: self._ask_and_save(kind))
        menu.addAction(tr("Copy picture")).triggered.connect(self._copy)
        return menu

    def save(self, path: Path) -> None:
        """Write the plot to a .png, .svg or .csv file.

        Raises:
            OSError: the file cannot be written.
        """
        suffix = path.suffix.lower()
        if suffix == ".csv":
            path.write_text(self.csv(), encoding="utf-8", newline="")
        elif suffix == ".svg":
            path.write_bytes(self.drawing())
        elif not self.picture().save(str(path), "PNG"):
            raise OSError(tr("{path} could not be written.", path=path))

    def csv(self) -> str:
        """The data that is shown, as comma-separated values."""
        names, rows = self.table()
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows(rows)
        return out.getvalue()

    def drawing(self) -> bytes:
        """The card as SVG."""
        buffer = QBuffer()
        buffer.open(QBuffer.OpenModeFlag.WriteOnly)
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        generator.setSize(self.size())
        # Axes are kept as pictures, which would be scaled by the ratio of the resolutions.
        generator.setResolution(self.logicalDpiX())
        generator.setViewBox(self.rect())
        generator.setTitle(tr(self.title))
        painter = QPainter(generator)
        painter.setFont(self.font())
        painter.fillRect(self.rect(), QColor(self._theme.surface))
        try:
            self._draw(painter)
        finally:
            painter.end()
        return bytes(buffer.data().data())

    def picture(self, scale: float = 2.0) -> QPixmap:
        """The card as a picture, sharp also when enlarged."""
        pixmap = QPixmap(self.size() * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(self._theme.surface)
        self.render(pixmap)
        return pixmap

    def _draw(self, painter: QPainter) -> None:
        """Title, key and plot as shapes; `render` would hand over the plot as pixels."""
        line, head = (_within(self, part) for part in (self._key, self._heading))
        painter.setPen(QColor(self._theme.text))
        painter.drawText(head, tr(self.title))
        parts = [part for colour, words in self.key() for part in (("■ ", colour), (f"{words}   ", self._theme.muted))]
        widths = [painter.fontMetrics().horizontalAdvance(text) for text, _ in parts]
        x = line.left()
        for (text, ink), width in zip(parts, widths, strict=True):
            painter.setPen(QColor(ink))
            painter.drawText(QRect(x, line.top(), width + 4, line.height()), text)
            x += width
        self.widget.render(painter, self.widget.geometry().toRectF(), self.widget.viewport().rect())

    def _ask_and_save(self, kind: str) -> None:
        name = f"{self.title.lower().replace(' ', '-')}.{kind.lower()}"
        heading = tr("Save “{title}”", title=tr(self.title))
        chosen, _ = QFileDialog.getSaveFileName(self, heading, name, f"{kind} (*.{kind.lower()})")
        ending = f".{kind.lower()}"
        path = place_of(self, chosen, [ending], ending) if chosen else None
        if path is None:
            return
        try:
            self.save(path)
        except OSError as error:
            QMessageBox.warning(self, tr("Not saved"), tr("The plot could not be saved: {error}", error=error))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setPixmap(self.picture())

    # Inside

    def _set_up_plot(self) -> None:
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setMouseEnabled(x=False, y=False)
        self.plot.disableAutoRange()
        for name, label in (("left", self.y_label), ("bottom", self.x_label)):
            axis = self.plot.getAxis(name)
            axis.enableAutoSIPrefix(False)
            axis.setLabel(tr(label) + (f", {self.y_unit}" if name == "left" and self.y_unit else ""))
            axis.setStyle(tickTextOffset=6, tickLength=-4, maxTickLevel=0, hideOverlappingLabels=False)
        self.widget.setFrameShape(self.widget.Shape.NoFrame)
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def _lay_out(self) -> None:
        self._heading = QLabel(tr(self.title))
        self._heading.setProperty("type", "heading")
        font = self._heading.font()
        font.setBold(True)
        self._heading.setFont(font)
        self._empty.setObjectName("plotEmpty")
        stack = QGridLayout()
        stack.addWidget(self.widget, 0, 0)
        stack.addWidget(self._empty, 0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 6)
        column.setSpacing(4)
        self.controls = QHBoxLayout()
        """Choices of the plot, below its title."""
        column.addWidget(FlowRow((self._heading, self._key), "apart"))
        column.addLayout(self.controls)
        column.addLayout(stack, 1)

    def minimumSizeHint(self) -> QSize:
        """As narrow as a dock may be, but never so low that an axis is cut off."""
        return QSize(240, super().minimumSizeHint().height())


def _within(card: QWidget, part: QWidget) -> QRect:
    """Where a part lies on the card."""
    return QRect(part.mapTo(card, part.rect().topLeft()), part.size())


def _caption(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(max(6.0, 0.86 * font.pointSizeF()))
    return small
