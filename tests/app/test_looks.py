"""Looks that a test can hold: headings over their numbers, rings where they belong, windows that fit the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtWidgets import QApplication, QBoxLayout, QDialog, QTableView, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.help.palette import CommandDelegate, Palette
from app.main_window import MainWindow
from app.runs.compare_view import LEAST_PLOT, CompareView
from app.style import Stylist
from app.theme import DARK, LIGHT, Theme, contrast
from app.widgets import ElidedLabel, open_at
from tests.app.chat import scripted_records as script
from tests.app.runs.test_comparison import trace
from tests.app.test_main_window import ask

LEFT, RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


@pytest.fixture
def comparison(qtbot: QtBot, stylist: Stylist) -> CompareView:
    view = CompareView(stylist.theme)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.show()
    rounds = script.long_reply(200)
    view.show_traces(trace(*rounds), trace(*(replace(r, verify_s=r.verify_s / 3) for r in rounds)))
    return view


def side(model: QAbstractItemModel, column: int, row: int = -1) -> Qt.AlignmentFlag:
    """Where a cell's text stands; the heading's if no row is given."""
    role = Qt.ItemDataRole.TextAlignmentRole
    found = (
        model.data(model.index(row, column), role)
        if row >= 0
        else model.headerData(column, Qt.Orientation.Horizontal, role)
    )
    flags = Qt.AlignmentFlag(found) if found is not None else LEFT
    return RIGHT if flags & RIGHT else LEFT


def assert_headings_over_columns(table: QTableView) -> None:
    model = table.model()
    assert model.rowCount() > 0
    for column in range(model.columnCount()):
        assert side(model, column) == side(model, column, 0), model.headerData(column, Qt.Orientation.Horizontal)


def test_headings_stand_over_their_columns(loaded: MainWindow, qtbot: QtBot, comparison: CompareView) -> None:
    ask(qtbot, loaded)
    loaded.inspector.table.rows.refresh()
    loaded.docks.toggle("show_runs")
    qtbot.waitUntil(lambda: loaded.runs.panel.runs.rowCount() > 0)
    for table in (loaded.inspector.table, loaded.runs.panel.table, comparison.figures):
        assert_headings_over_columns(table)


def test_plots_of_two_runs_stand_below_each_other_where_it_is_narrow(qtbot: QtBot, comparison: CompareView) -> None:
    comparison.tabs.setCurrentIndex(1)
    first, second = comparison.progress, comparison.acceptance
    qtbot.waitUntil(lambda: second.x() >= first.x() + first.width())
    comparison.resize(LEAST_PLOT + 60, 700)
    qtbot.waitUntil(lambda: second.y() >= first.y() + first.height())
    assert comparison.head.direction() is QBoxLayout.Direction.TopToBottom
    assert min(first.height(), second.height()) >= first.minimumSizeHint().height()


def test_figures_are_whole_at_any_width(qtbot: QtBot, comparison: CompareView) -> None:
    figures = comparison.figures
    for width in (1200, 500):
        comparison.resize(width, 700)
        qtbot.waitUntil(lambda width=width: figures.width() <= width)
        QApplication.processEvents()
        for column in range(figures.columnCount()):
            assert figures.columnWidth(column) >= figures.sizeHintForColumn(column)
    assert figures.horizontalScrollBar().maximum() > 0
    comparison.resize(1200, 700)
    qtbot.waitUntil(lambda: figures.horizontalScrollBar().maximum() == 0)
    assert figures.horizontalHeader().length() == figures.viewport().width()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_verdict_on_a_figure_can_be_read(comparison: CompareView, theme: Theme) -> None:
    comparison.apply_theme(theme)
    figures = comparison.figures
    cells = [figures.item(row, 3) for row in range(figures.rowCount())]
    inks = {cell.foreground().color().name() for cell in cells if cell is not None and cell.font().bold()}
    assert inks
    for ink in inks:
        assert min(contrast(ink, ground) for ground in (theme.surface, theme.background, theme.accent_soft)) >= 4.5


def test_a_comparison_takes_the_focus_and_gives_it_back(loaded: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    ask(qtbot, loaded)
    qtbot.waitUntil(lambda: bool(loaded.runs.store.summaries()))
    path = loaded.runs.store.summaries()[0].path
    loaded.runs.compare(path, path)
    assert loaded.runs.comparison is not None
    assert loaded.focusWidget() is loaded.runs.comparison.sides[0].view
    loaded.runs.show_chat()
    assert loaded.focusWidget() is loaded.view
    assert not isinstance(loaded.focusWidget(), QToolButton)


def test_preferences_begin_with_their_first_setting(loaded: MainWindow) -> None:
    loaded.actions_by_name["preferences"].trigger()
    preferences = loaded.rooms.preferences
    assert preferences is not None
    assert preferences.focusWidget() is preferences.theme


def test_the_palette_follows_a_change_of_theme(loaded: MainWindow, qtbot: QtBot) -> None:
    loaded.actions_by_name["palette"].trigger()
    (palette,) = loaded.findChildren(Palette)
    (delegate,) = palette.findChildren(CommandDelegate)
    for mode, theme in (("dark", DARK), ("light", LIGHT)):
        loaded.set_theme_mode(mode)  # type: ignore[arg-type]
        qtbot.waitUntil(lambda theme=theme: delegate.theme == theme)
    palette.close()


def test_a_window_that_opens_fits_on_the_screen(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    open_at(dialog, 300, 200)
    assert (dialog.width(), dialog.height()) == (300, 200)
    open_at(dialog, 99_999, 99_999)
    screen = dialog.screen().availableSize()
    assert dialog.width() <= screen.width()
    assert dialog.height() < screen.height()


def test_a_line_that_gives_way_follows_width_and_font(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    line = ElidedLabel("A name that is rather long", holder)
    line.resize(400, 20)
    holder.show()
    assert line.text() == line.whole
    line.resize(60, 20)
    assert line.text() != line.whole
    assert line.text().endswith("…")


def test_an_empty_list_of_conversations_says_what_will_be_there(window: MainWindow, qtbot: QtBot) -> None:
    sidebar = window.desk.sidebar
    assert sidebar.none.isVisible()
    with qtbot.waitSignal(window.controller.loaded):
        window.load(Path("/models/first"))
    ask(qtbot, window)
    qtbot.waitUntil(lambda: not sidebar.none.isVisible())
