"""How the parts of the chat lie on the page."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QSizePolicy, QVBoxLayout, QWidget

from app.chat.token_fonts import column_width
from app.theme import GRID
from app.widgets import named


def transcript_page(view: QWidget, legend: QWidget, switch: QWidget) -> QWidget:
    """The transcript, and below it what its colours mean, with the switch for refused drafts."""
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(view, 1)
    column.addWidget(Column(LegendRow(legend, switch), above=GRID, below=GRID))
    return _paper(column)


def writing_area(composer: QWidget) -> QWidget:
    """The composer, over the column in which the transcript is set."""
    composer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    page = QVBoxLayout()
    page.setContentsMargins(0, 0, 0, 0)
    page.addWidget(Column(composer, above=GRID, below=2 * GRID))
    return _paper(page)


class Column(QWidget):
    """A part in the middle, as wide as the text's column with its margins and no wider."""

    def __init__(self, part: QWidget, above: int, below: int) -> None:
        super().__init__()
        self._part = part
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID, above, 2 * GRID, below)
        row.addStretch(1)
        row.addWidget(part, 1000)
        row.addStretch(1)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        """The column grows with the font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        self._part.setMaximumWidth(column_width(self.font()) + 4 * GRID)


class LegendRow(QWidget):
    """The legend with the switch beside it, or below it where the legend would become a narrow tower."""

    def __init__(self, legend: QWidget, switch: QWidget) -> None:
        super().__init__()
        self._legend, self._switch = legend, switch
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(2 * GRID)
        self._row.addWidget(legend, 1)
        self._row.addWidget(switch, 0, Qt.AlignmentFlag.AlignTop)

    def minimumSizeHint(self) -> QSize:
        """One below the other."""
        width = max(part.minimumSizeHint().width() for part in (self._legend, self._switch))
        return QSize(width, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Beside the switch there is to be room for two samples in a row."""
        super().resizeEvent(event)
        room = event.size().width() - self._switch.sizeHint().width() - 2 * GRID
        beside = room >= 2 * self._legend.minimumSizeHint().width()
        self._row.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        self._row.setSpacing(2 * GRID if beside else GRID // 2)


def _paper(layout: QLayout) -> QWidget:
    page = named(QWidget(), "page")
    page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    page.setLayout(layout)
    return page
