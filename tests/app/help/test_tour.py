"""The hints of the first start: stepped through or skipped by keyboard, and never shown unasked again."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from tests.app.conftest import MakeWindow


def test_the_hints_are_shown_once_and_stay_inside_the_window(qtbot: QtBot, make_window: MakeWindow) -> None:
    window = make_window()
    window.rooms.show_first_tour()
    tour = window.rooms.tour
    assert tour is not None
    for at in range(4):
        assert tour.at == at
        assert window.rect().contains(tour.geometry())
        qtbot.keyClick(tour.next, Qt.Key.Key_Return)
    assert window.rooms.tour is None
    window.rooms.show_first_tour()
    assert window.rooms.tour is None
    window.memory.save()
    again = make_window()
    again.rooms.show_first_tour()
    assert again.rooms.tour is None
    again.actions_by_name["tour"].trigger()
    assert again.rooms.tour is not None


def test_escape_skips_the_rest(qtbot: QtBot, make_window: MakeWindow) -> None:
    window = make_window()
    window.rooms.show_first_tour()
    assert window.rooms.tour is not None
    qtbot.keyClick(window.rooms.tour.next, Qt.Key.Key_Escape)
    assert window.rooms.tour is None
    assert window.memory.settings.toured


def test_what_is_typed_after_the_hints_goes_into_the_message(qtbot: QtBot, make_window: MakeWindow) -> None:
    window = make_window()
    assert window.focusWidget() is window.composer.edit
    window.rooms.show_first_tour()
    assert window.rooms.tour is not None
    qtbot.keyClick(window.rooms.tour.next, Qt.Key.Key_Escape)
    assert window.focusWidget() is window.composer.edit
