"""The list of kept runs: what ran, when, how it went; open one, compare two, delete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QGridLayout, QHeaderView, QMessageBox, QTableView, QVBoxLayout, QWidget

from app.language import mark, tr, trn
from app.runs.store import RunStore
from app.runs.summary import RunSummary
from app.theme import GRID
from app.widgets import label, named, push

Index = QModelIndex | QPersistentModelIndex
COLUMNS = (
    mark("Date"),
    mark("Drafter"),
    mark("Tokens"),
    mark("Tokens/s"),
    mark("Accepted"),
    mark("Model"),
    mark("Prompt"),
)
_NUMBERS = range(2, 5)


def cells(run: RunSummary) -> tuple[str, ...]:
    """A run's row."""
    stats = run.stats
    return (
        run.when,
        run.drafter,
        str(stats.emitted) if stats.emitted else "–",
        f"{stats.tokens_per_s:.1f}" if stats.tokens_per_s else "–",
        "–" if stats.acceptance is None else f"{100 * stats.acceptance:.0f} %",
        run.model,
        " ".join(run.prompt.split())[:120],
    )


def _alignment(column: int) -> int:
    """Numbers stand at the right, under their heading."""
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)


class RunsModel(QAbstractTableModel):
    """The runs, newest first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.runs: list[RunSummary] = []

    def show(self, runs: Sequence[RunSummary]) -> None:
        """Show these runs."""
        self.beginResetModel()
        self.runs = list(runs)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.runs)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        run, shown = self.runs[index.row()], cells(self.runs[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return shown[index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{tr(COLUMNS[index.column()])} {shown[index.column()]}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{run.prompt}\n\n{run.path.name}, {run.size / 1024:.0f} KiB"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return tr(COLUMNS[section]) if role == Qt.ItemDataRole.DisplayRole else None


class RunsPanel(QWidget):
    """The dock's content."""

    open_requested = Signal(object)  # Path
    compare_requested = Signal(object, object)  # Path, Path: the older one first
    file_requested = Signal()

    def __init__(self, store: RunStore) -> None:
        super().__init__()
        self._store = store
        self._stale = True
        self.setAccessibleName(tr("Runs"))
        self.runs = RunsModel(self)
        self.table = _table(self.runs)
        self.table.doubleClicked.connect(self.open_chosen)
        self.table.selectionModel().selectionChanged.connect(self._show_state)
        self.open = push(tr("Open"), self.open_chosen, tip=tr("Look at the chosen run, without a model"))
        self.compare = push(
            tr("Compare two"), self.compare_chosen, tip=tr("Choose two runs with Ctrl, then compare them")
        )
        self.file = push(tr("Open a file…"), self.file_requested.emit, tip=tr("Open a run from a file (.jsonl)"))
        self.delete = push(tr("Delete"), self.delete_chosen, tip=tr("Delete the chosen runs"))
        self.folder = push(tr("Show the folder"), self._show_folder, kind="link")
        self.hint = label("", "caption", wrap=True)
        self._lay_out()
        self._show_state()

    def refresh(self) -> None:
        """Read the folder again, now or when somebody looks."""
        self._stale = True
        if self.isVisible():
            self._read()

    def chosen(self) -> list[RunSummary]:
        """The selected runs, newest first."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.runs.runs[row] for row in rows]

    @Slot()
    def open_chosen(self) -> None:
        """Open the run that is chosen."""
        if chosen := self.chosen():
            self.open_requested.emit(chosen[0].path)

    @Slot()
    def compare_chosen(self) -> None:
        """Compare the two runs that are chosen."""
        if len(chosen := self.chosen()) == 2:
            self.compare_requested.emit(chosen[1].path, chosen[0].path)

    @Slot()
    def delete_chosen(self) -> None:
        """Delete the chosen runs, after a question."""
        chosen = self.chosen()
        words = trn(
            "Delete this run? The conversations stay.",
            "Delete these {n} runs? The conversations stay.",
            len(chosen),
        )
        asked = QMessageBox.question(self, tr("Delete runs"), words)
        if asked is QMessageBox.StandardButton.Yes:
            self._store.delete(run.path for run in chosen)
            self._read()

    def showEvent(self, event: Any) -> None:
        """Read the folder if it may have changed."""
        super().showEvent(event)
        if self._stale:
            self._read()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens, Delete deletes."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open_chosen()
        elif event.key() == Qt.Key.Key_Delete and self.chosen():
            self.delete_chosen()
        else:
            super().keyPressEvent(event)

    def _read(self) -> None:
        self._stale = False
        kept = {run.path for run in self.chosen()}
        self.runs.show(self._store.summaries())
        for row, run in enumerate(self.runs.runs):
            if run.path in kept:
                self.table.selectRow(row)
        self._show_state()

    @Slot()
    def _show_state(self) -> None:
        count, there = len(self.chosen()), len(self.runs.runs)
        self.open.setEnabled(count == 1)
        self.compare.setEnabled(count == 2)
        self.delete.setEnabled(count > 0)
        size = sum(run.size for run in self.runs.runs) / 2**20
        kept = trn(
            "{n} run, {size:.1f} MiB. The oldest go when there are too many.",
            "{n} runs, {size:.1f} MiB. The oldest go when there are too many.",
            there,
            size=size,
        )
        self.hint.setText(kept if there else tr("Every reply is kept here as a run. There is none yet."))

    @Slot()
    def _show_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._store.folder).absolute())))

    def _lay_out(self) -> None:
        buttons = QGridLayout()
        buttons.setSpacing(GRID)
        for place, button in enumerate((self.open, self.compare, self.file, self.delete)):
            buttons.addWidget(button, place // 2, place % 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, GRID)
        column.setSpacing(GRID)
        column.addWidget(self.table, 1)
        below = QVBoxLayout()
        below.setContentsMargins(2 * GRID, 0, 2 * GRID, 0)
        below.addLayout(buttons)
        below.addWidget(self.hint)
        below.addWidget(self.folder, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(below)


def _table(runs: RunsModel) -> QTableView:
    table = named(QTableView(), "runsTable")
    table.setModel(runs)
    table.setAccessibleName(tr("Kept runs"))
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 10)
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
    table.horizontalHeader().setStretchLastSection(True)
    table.horizontalHeader().setHighlightSections(False)  # bold is wider than its column
    widths = ("2026-00-00 00:00:00", "MTP + n-gram, 3", "10000", "10000", "100 %", "a model's name")
    for column, sample in enumerate(widths):
        wide = max(table.fontMetrics().horizontalAdvance(text) for text in (sample, tr(COLUMNS[column])))
        table.setColumnWidth(column, wide + 3 * GRID)
    return table
