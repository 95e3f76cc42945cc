"""In a small window every panel keeps its words whole: they wrap or scroll, and nothing lies over anything else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QDoubleSpinBox, QLineEdit, QPlainTextEdit, QPushButton, QSpinBox
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.style import Stylist
from app.theme import DARK, LIGHT, Theme, contrast
from tests.app.cut import cut_words, sideways
from tests.app.test_main_window import ask

SMALL = 800, 600
PANELS = ("show_inspector", "show_memory", "show_settings", "show_runs")


@pytest.fixture
def small(window: MainWindow, qtbot: QtBot) -> MainWindow:
    window.resize(*SMALL)
    settle(qtbot)
    return window


def settle(qtbot: QtBot) -> None:
    """Let layouts ask each other until all agree."""
    for _ in range(10):
        QApplication.processEvents()
    qtbot.wait(20)


def test_the_first_page_is_whole_without_a_model(small: MainWindow) -> None:
    assert small.width() == SMALL[0]
    assert not cut_words(small)
    assert not sideways(small)


@pytest.mark.parametrize("panel", PANELS)
def test_no_words_are_cut_beside_a_conversation(
    small: MainWindow, loaded: MainWindow, qtbot: QtBot, panel: str
) -> None:
    ask(qtbot, loaded)
    if panel != "show_inspector":
        small.docks.toggle(panel)
    settle(qtbot)
    assert small.docks.docks[panel].isVisible()
    assert not cut_words(small)
    assert not sideways(small)


@pytest.mark.parametrize("panel", PANELS)
def test_no_words_are_cut_in_large_type(loaded: MainWindow, qtbot: QtBot, stylist: Stylist, panel: str) -> None:
    ask(qtbot, loaded)
    stylist.set_font_size(13)
    try:
        if panel != "show_inspector":
            loaded.docks.toggle(panel)
        settle(qtbot)
        assert not cut_words(loaded)
        assert not sideways(loaded)
    finally:
        stylist.set_font_size(0)


def test_axes_have_room_for_large_type(loaded: MainWindow, qtbot: QtBot, stylist: Stylist) -> None:
    ask(qtbot, loaded)
    loaded.inspector.complete()
    card = loaded.inspector.plots.positions
    before, height = card.plot.getAxis("left").width(), card.minimumSizeHint().height()
    stylist.set_font_size(18)
    try:
        settle(qtbot)
        assert card.plot.getAxis("left").width() > before
        assert card.minimumSizeHint().height() > height
        assert card.plot.getAxis("bottom").label.font().pointSizeF() == 18
    finally:
        stylist.set_font_size(0)


def test_the_legend_stands_above_its_switch_where_both_would_not_fit(
    small: MainWindow, loaded: MainWindow, qtbot: QtBot
) -> None:
    ask(qtbot, loaded)
    settle(qtbot)
    legend, switch = small.legend, small.refused
    assert switch.y() >= legend.y() + legend.height()
    small.resize(1280, 800)
    settle(qtbot)
    assert switch.x() >= legend.x() + legend.width()


def test_a_large_window_keeps_the_legend_and_the_composer_over_the_text(loaded: MainWindow, qtbot: QtBot) -> None:
    loaded.resize(2560, 1440)
    ask(qtbot, loaded)
    settle(qtbot)
    row = loaded.legend.parentWidget()
    assert row.width() == loaded.composer.width() < 800
    assert row.mapTo(loaded, row.rect().topLeft()).x() == loaded.composer.mapTo(loaded, row.rect().topLeft()).x()


def test_the_composer_does_not_move_its_text_when_it_gets_the_focus(window: MainWindow, qtbot: QtBot) -> None:
    edit = window.composer.edit
    edit.focus_changed.emit(True)
    settle(qtbot)
    before = edit.geometry()
    edit.focus_changed.emit(False)
    settle(qtbot)
    assert edit.geometry() == before


@pytest.fixture
def themed(stylist: Stylist, request: pytest.FixtureRequest) -> Iterator[Theme]:
    theme: Theme = request.param
    stylist.set_mode("dark" if theme.dark else "light")
    yield theme
    stylist.set_mode("light")


@pytest.mark.parametrize("themed", [LIGHT, DARK], ids=["light", "dark"], indirect=True)
@pytest.mark.parametrize("field", [QLineEdit, QPlainTextEdit])
def test_what_stands_in_an_empty_field_can_be_read(
    qtbot: QtBot, themed: Theme, field: type[QLineEdit] | type[QPlainTextEdit]
) -> None:
    made = field()
    qtbot.addWidget(made)
    made.show()
    colour = made.palette().placeholderText().color()
    assert colour.alpha() == 255
    assert contrast(colour.name(), themed.surface) >= 4.5


def test_controls_of_one_row_are_equally_high(qtbot: QtBot, stylist: Stylist) -> None:
    heights = set()
    for kind in (QSpinBox, QDoubleSpinBox, QComboBox, QLineEdit, QPushButton):
        made = kind()
        qtbot.addWidget(made)
        made.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        made.show()
        heights.add(made.sizeHint().height())
    assert len(heights) == 1
