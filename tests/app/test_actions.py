"""The menus: what an action asks of the window is exactly what its name says."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel, QMainWindow
from pytestqt.qtbot import QtBot

from app.actions import ACTIONS, SEPARATOR, ShortcutSheet, make_actions, plain
from app.main_window import MainWindow


def test_no_slot_gets_the_check_mark_as_an_argument(qtbot: QtBot) -> None:
    """A slot with an optional argument would take it for one: False is also the index 0."""
    window = QMainWindow()
    qtbot.addWidget(window)
    called: list[tuple[str, object]] = []
    names = [spec.name for spec in ACTIONS if spec.name != SEPARATOR]

    def slot_of(name: str) -> Callable[[], object]:
        def slot(entry: object = None) -> None:
            called.append((name, entry))

        return slot

    for action in make_actions(window, {name: slot_of(name) for name in names}).values():
        action.trigger()
    assert called == [(name, None) for name in names]


def test_every_key_belongs_to_one_action() -> None:
    """Qt takes a key of two actions for ambiguous, and then neither is done."""
    keys = [spec.keys for spec in ACTIONS if spec.keys]
    assert sorted(keys) == sorted(set(keys))


def test_the_menu_of_the_program_on_macos_is_by_name_and_not_by_words(loaded: MainWindow) -> None:
    roles = {name: action.menuRole() for name, action in loaded.actions_by_name.items()}
    chosen = {name for name, role in roles.items() if role != QAction.MenuRole.NoRole}
    assert chosen == {"about", "preferences", "quit"}
    assert QAction.MenuRole.TextHeuristicRole not in roles.values()


def test_the_sheet_of_keys_fits_the_screen_and_names_each_menu_once(loaded: MainWindow) -> None:
    loaded.actions_by_name["shortcuts"].trigger()
    QApplication.processEvents()
    sheet = loaded.findChild(ShortcutSheet)
    assert sheet is not None
    assert sheet.height() <= sheet.screen().availableGeometry().height()
    texts = [part.text() for part in sheet.findChildren(QLabel)]
    headings = [part.text() for part in sheet.findChildren(QLabel) if part.property("type") == "heading"]
    assert len(headings) == len(set(headings))
    assert {plain(spec) for spec in ACTIONS if spec.keys} <= set(texts), "every key is there"
    close = sheet.findChild(QDialogButtonBox)
    assert close is not None
    assert sheet.rect().contains(close.geometry())
    sheet.close()
