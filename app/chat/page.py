"""How the parts of the chat lie on the page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLayout, QSizePolicy, QVBoxLayout, QWidget

from app.chat.token_fonts import COLUMN_CHARACTERS
from app.theme import GRID
from app.widgets import named


def transcript_page(view: QWidget, legend: QWidget, switch: QWidget) -> QWidget:
    """The transcript, and below it what its colours mean, with the switch for refused drafts."""
    legend_row = QHBoxLayout()
    legend_row.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
    legend_row.setSpacing(2 * GRID)
    legend_row.addWidget(legend, 1)
    legend_row.addWidget(switch, 0, Qt.AlignmentFlag.AlignTop)
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(view, 1)
    column.addLayout(legend_row)
    return _paper(column)


def writing_area(composer: QWidget) -> QWidget:
    """The composer, over the column in which the transcript is set."""
    composer.setMaximumWidth(composer.fontMetrics().horizontalAdvance("0") * COLUMN_CHARACTERS + 4 * GRID)
    composer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
    row = QHBoxLayout()
    row.setContentsMargins(2 * GRID, GRID, 2 * GRID, 2 * GRID)
    row.addStretch(1)
    row.addWidget(composer, 1000)
    row.addStretch(1)
    return _paper(row)


def _paper(layout: QLayout) -> QWidget:
    page = named(QWidget(), "page")
    page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    page.setLayout(layout)
    return page
