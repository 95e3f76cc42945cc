"""Every round as a row: sortable, copyable, and what screen readers read instead of the plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from app.inspector.round_words import accepted, milliseconds, phase, sources, text_of
from app.inspector.rounds_model import RoundsModel
from app.language import mark, tr
from engine import Round

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class Column:
    """One column: how a round is shown in it, and how rounds are sorted by it."""

    title: str
    """Marked for translation, as is the tip."""
    tip: str
    value: Callable[[Round], Any]
    digits: int | None = None
    """Decimals of a number; None for text."""

    @property
    def alignment(self) -> int:
        """Numbers stand at the right, under their heading."""
        side = Qt.AlignmentFlag.AlignLeft if self.digits is None else Qt.AlignmentFlag.AlignRight
        return int(side | Qt.AlignmentFlag.AlignVCenter)


COLUMNS = (
    Column(mark("Round"), mark("Number since the chat began"), lambda r: r.index, 0),
    Column(mark("Phase"), mark("Thinking or answer"), phase),
    Column(mark("Drafter"), mark("Who proposed"), sources),
    Column(mark("Proposed"), mark("Drafts"), lambda r: len(r.drafts), 0),
    Column(mark("Accepted"), mark("Drafts that the model took"), accepted, 0),
    Column(mark("Tokens"), mark("What the round added, the model's own included"), lambda r: len(r.committed), 0),
    Column(mark("Draft ms"), mark("Time of drafting"), lambda r: 1e3 * r.draft_s, 1),
    Column(mark("Verify ms"), mark("Time of checking the drafts"), lambda r: 1e3 * r.verify_s, 1),
    Column(mark("Disk ms"), mark("Of both, waiting for the disk"), lambda r: 1e3 * r.disk_wait_s, 1),
    Column(mark("Total ms"), mark("The whole round"), milliseconds, 1),
    Column(mark("Text"), mark("What the round added to the reply"), text_of),
)


class RoundTableModel(QAbstractTableModel):
    """Rows of a `RoundsModel`. New rounds go to the end until the person sorts again."""

    def __init__(self, rounds: RoundsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rounds = rounds
        self._order: list[int] = []
        """Index in the log by row."""

    def refresh(self) -> None:
        """Take in what the rounds model has got since."""
        known, there = len(self._order), self._rounds.rounds
        if there < known:
            self.beginResetModel()
            self._order = list(range(there))
            self.endResetModel()
        elif there > known:
            self.beginInsertRows(QModelIndex(), known, there - 1)
            self._order.extend(range(known, there))
            self.endInsertRows()

    def number_at(self, row: int) -> int:
        """The number of the round in a row."""
        return self._order[row] + 1

    def row_of(self, number: int) -> int:
        """The row of a round, -1 if it has none yet."""
        if number - 1 < len(self._order) and self._order[number - 1] == number - 1:
            return number - 1  # not sorted
        return self._order.index(number - 1) if number - 1 in self._order else -1

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column = COLUMNS[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            shown = self.shown(index.row(), index.column())
            spoken = role == Qt.ItemDataRole.AccessibleTextRole
            return f"{tr(column.title)} {shown or tr('none')}" if spoken else shown
        return column.alignment if role == Qt.ItemDataRole.TextAlignmentRole else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return column.alignment
        shown = {Qt.ItemDataRole.DisplayRole: column.title, Qt.ItemDataRole.ToolTipRole: column.tip}
        text = shown.get(Qt.ItemDataRole(role))
        return None if text is None else tr(text)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; equal rows stay in the order of the rounds."""
        self.layoutAboutToBeChanged.emit()  # here the selection makes its indices persistent
        kept = [(index, self._order[index.row()]) for index in self.persistentIndexList()]
        log, value = self._rounds.log, COLUMNS[column].value
        by_number = column == 0
        backwards = order is Qt.SortOrder.DescendingOrder
        self._order.sort()
        self._order.sort(key=(lambda i: i) if by_number else (lambda i: value(log[i])), reverse=backwards)
        rows = {place: row for row, place in enumerate(self._order)} if kept else {}
        for index, place in kept:
            self.changePersistentIndex(index, self.index(rows[place], index.column()))
        self.layoutChanged.emit()

    def shown(self, row: int, column: int) -> str:
        """A cell's text."""
        place = self._order[row]
        value = place + 1 if column == 0 else COLUMNS[column].value(self._rounds.log[place])
        digits = COLUMNS[column].digits
        if digits is not None:
            return f"{value:.{digits}f}"
        return str(value).replace("\n", "↵")

    def text(self, rows: list[int], separator: str = "\t") -> str:
        """Rows with their header, as a spreadsheet takes them."""
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n")
        writer.writerow([tr(column.title) for column in COLUMNS])
        writer.writerows([self.shown(row, column) for column in range(len(COLUMNS))] for row in rows)
        return out.getvalue()


class RoundTable(QTableView):
    """The table with copying, and a signal when a row is chosen."""

    round_chosen = Signal(int)
    """The number of the round that a person went to."""

    def __init__(self, rounds: RoundsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = RoundTableModel(rounds, self)
        self.setModel(self.rows)
        self.setAccessibleName(tr("Rounds as a table"))
        self.setAccessibleDescription(tr("One row a round. Enter or a click shows the round in the transcript."))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        for number, column in enumerate(COLUMNS):
            self.setColumnWidth(number, self.fontMetrics().horizontalAdvance(tr(column.title)) + 40)
        self._copy = QAction(tr("Copy rows"), self)
        self._copy.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
        self._copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self._copy.triggered.connect(self.copy)
        self._copy_all = QAction(tr("Copy all rows"), self)
        self._copy_all.triggered.connect(self.copy_all)
        self.addActions([self._copy, self._copy_all])
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)

    def show_number(self, number: int | None) -> None:
        """Select the row of a round that was chosen elsewhere."""
        row = -1 if number is None else self.rows.row_of(number)
        if row < 0:
            self.clearSelection()
        elif not self.selectionModel().isRowSelected(row, QModelIndex()):
            self.selectRow(row)

    @Slot()
    def copy(self) -> None:
        """Copy the selected rows, tab-separated."""
        if rows := sorted({index.row() for index in self.selectionModel().selectedRows()}):
            QGuiApplication.clipboard().setText(self.rows.text(rows))

    @Slot()
    def copy_all(self) -> None:
        """Copy every row, tab-separated."""
        QGuiApplication.clipboard().setText(self.rows.text(list(range(self.rows.rowCount()))))

    @Slot(QModelIndex)
    def _choose(self, index: QModelIndex) -> None:
        self.round_chosen.emit(self.rows.number_at(index.row()))

    @Slot(QPoint)
    def _show_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions([self._copy, self._copy_all])
        menu.exec(self.viewport().mapToGlobal(at))
