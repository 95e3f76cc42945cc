"""Two runs side by side: their transcripts, where they part, what differs, and their plots on top of each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QFrame,
    QHeaderView,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.chat.cells import Reply
from app.inspector.plot_card import PlotCard
from app.language import tr
from app.runs.comparison import Delta, RunComparison, compare_runs
from app.runs.overlay_plots import NAMES, AcceptanceOverlay, ProgressOverlay
from app.runs.run_view import RunView
from app.theme import GRID, Theme, readable
from app.widgets import ScrollingPage, label
from engine import Trace

LEAST_PLOT = 30 * GRID
"""Width of a plot in which its axes can be read; what is narrower than two of them has its parts in one column."""


class CompareView(QWidget):
    """Shows a comparison."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.comparison: RunComparison | None = None
        self.sides = tuple(RunView(theme, name) for name in NAMES)
        self.verdict = label("", "heading", wrap=True)
        self.verdict.setTextFormat(Qt.TextFormat.PlainText)
        self.figures = _table(tr("What differs in figures"), ("", "A", "B", "B − A", tr("95 % interval")))
        self.settings = _table(tr("What was set differently"), ("", "A", "B"))
        self.progress = ProgressOverlay(theme)
        self.acceptance = AcceptanceOverlay(theme)
        self._lay_out()

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        for side in self.sides:
            side.apply_theme(theme)
        for plot in (self.progress, self.acceptance):
            plot.apply_theme(theme)
        if self.comparison is not None:
            self._fill(self.comparison)

    def show_traces(self, first: Trace, second: Trace) -> None:
        """Compare two runs."""
        self.comparison = compare_runs(first, second)
        passes = [[r for r in trace.rounds if r.index > 0] for trace in (first, second)]
        for side, trace in zip(self.sides, (first, second), strict=True):
            side.show_trace(trace)
        self.progress.show_runs(passes)
        self.acceptance.show_runs(passes)
        self._fill(self.comparison)
        self.mark_parting()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The way back stands below the verdict where that would become a narrow tower."""
        super().resizeEvent(event)
        beside = event.size().width() >= 2 * LEAST_PLOT
        self.head.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def mark_parting(self) -> None:
        """Put both transcripts' cursors on the first token that differs."""
        comparison = self.comparison
        parting = comparison.parting if comparison is not None and comparison.same_prompt else None
        for side, place in zip(self.sides, parting.rounds if parting is not None else (None, None), strict=True):
            side.mark(side.trace.rounds[place] if place is not None and side.trace is not None else None)
            if place is None or parting is None:
                continue
            entry = next(i for i, e in enumerate(side.transcript.entries) if isinstance(e, Reply))
            cell = _cell_of(side.transcript.entries[entry], parting.token)
            if cell is not None:
                side.view.cursor_cell = (entry, cell)
                side.view.reveal(entry, cell)

    def _fill(self, comparison: RunComparison) -> None:
        self.verdict.setText(_verdict(comparison))
        rows = [delta_row(delta) for delta in comparison.deltas]
        _fill_table(self.figures, rows)
        for number, delta in enumerate(comparison.deltas):
            colour = self._judgement(delta)
            for column in (3, 4):
                item = self.figures.item(number, column)
                if item is not None and colour:
                    item.setForeground(QColor(colour))
                    font = QFont(item.font())
                    font.setBold(True)
                    item.setFont(font)
        _fill_table(self.settings, [(s.name, s.first, s.second) for s in comparison.settings])

    def _judgement(self, delta: Delta) -> str:
        """Blue where B is surely better, vermilion where it is surely worse; nothing where it may be chance."""
        if not delta.certain or not delta.better or delta.delta is None:
            return ""
        good = (delta.delta > 0) == (delta.better == "more")
        return readable(self._theme.accepted_mtp if good else self._theme.refused, self._theme)

    def _lay_out(self) -> None:
        transcripts = QSplitter(Qt.Orientation.Horizontal)
        for side in self.sides:
            transcripts.addWidget(side)
        plots = ScrollingPage()
        plots.setWidget(PlotPair(self.progress, self.acceptance))
        tabs = QTabWidget()
        tabs.setDocumentMode(True)
        tabs.setAccessibleName(tr("Figures, plots or settings"))
        for widget, title in (
            (self.figures, tr("Figures")),
            (plots, tr("Plots")),
            (self.settings, tr("Settings that differ")),
        ):
            tabs.addTab(widget, title)
        self.tabs = tabs
        halves = QSplitter(Qt.Orientation.Vertical)
        halves.addWidget(transcripts)
        halves.addWidget(tabs)
        halves.setSizes([320, 300])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.head.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        self.head.addWidget(self.verdict, 1)
        column.addLayout(self.head)
        column.addWidget(halves, 1)


class PlotPair(QFrame):
    """Two plots side by side, or one below the other where they would become too narrow to be read."""

    def __init__(self, first: PlotCard, second: PlotCard) -> None:
        super().__init__()
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        for plot in (first, second):
            self._row.addWidget(plot, 1)

    def minimumSizeHint(self) -> QSize:
        """One below the other."""
        return QSize(LEAST_PLOT, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = event.size().width() >= 2 * LEAST_PLOT
        self._row.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)


def delta_row(delta: Delta) -> tuple[str, str, str, str, str]:
    """A figure's row: name, A, B, difference, interval."""
    digits, unit = delta.digits, f" {delta.unit}" if delta.unit else ""

    def number(value: float | None, sign: str = "") -> str:
        return "–" if value is None else f"{value:{sign}.{digits}f}".replace("-", "−")

    def measured(value: float | None, sign: str = "") -> str:
        return number(value, sign) + (unit if value is not None else "")

    interval = f"{number(delta.low, '+')} … {number(delta.high, '+')}{unit}" if delta.low is not None else ""
    return (
        delta.name,
        measured(delta.first),
        measured(delta.second),
        measured(delta.delta, "+"),
        interval if delta.certain or not interval else tr("{interval} (may be chance)", interval=interval),
    )


def _verdict(comparison: RunComparison) -> str:
    if not comparison.same_prompt:
        return tr(
            "The runs answer different prompts (all that was said before counts): "
            "figures can be compared, replies cannot."
        )
    if comparison.parting is None:
        return tr("The same prompt, and the same reply to the last token.")
    return tr(
        "The same prompt; the replies part at token {token}, which is marked in both.",
        token=comparison.parting.token + 1,
    )


def _cell_of(reply: object, token: int) -> int | None:
    """The cell of the reply's `token`-th token, ghosts not counted."""
    if not isinstance(reply, Reply):
        return None
    said = (cell for cell in range(len(reply)) if not reply.ghost(cell))
    return next((cell for place, cell in enumerate(said) if place == token), None)


def _table(name: str, titles: Sequence[str]) -> FigureTable:
    table = FigureTable(0, len(titles))
    for column, title in enumerate(titles):
        item = QTableWidgetItem(title)
        item.setTextAlignment(_alignment(column, len(titles)))
        table.setHorizontalHeaderItem(column, item)
    table.setAccessibleName(name)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 8)
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    return table


class FigureTable(QTableWidget):
    """The last column fills the width that is left; where none is, the table scrolls and shows its words whole."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Look again at what stands in the cells."""
        header = self.horizontalHeader()
        columns = range(self.columnCount())
        wanted = sum(max(self.sizeHintForColumn(column), header.sectionSizeHint(column)) for column in columns)
        header.setStretchLastSection(wanted <= self.viewport().width())
        if not header.stretchLastSection():
            self.resizeColumnsToContents()  # it keeps the width that it was squeezed to


def _alignment(column: int, columns: int) -> Qt.AlignmentFlag:
    """Figures stand at the right, under their heading."""
    figure = 0 < column < 4 and columns > 3
    return (Qt.AlignmentFlag.AlignRight if figure else Qt.AlignmentFlag.AlignLeft) | Qt.AlignmentFlag.AlignVCenter


def _fill_table(table: FigureTable, rows: Sequence[Sequence[str]]) -> None:
    table.setRowCount(len(rows))
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            item = QTableWidgetItem(text)
            item.setToolTip(text)
            item.setTextAlignment(_alignment(column, table.columnCount()))
            table.setItem(number, column, item)
    table.fit()
