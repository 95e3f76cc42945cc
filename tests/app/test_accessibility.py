"""Every control of the whole window, of every panel and of every dialog has a name, and the keyboard reaches it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow

CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit,
    QProgressBar,
)  # fmt: skip
ROOMS = (
    "library", "download", "palette", "preferences", "tour", "log", "doctor", "about", "shortcuts", "system_prompt",
)  # fmt: skip


def controls(root: QWidget) -> Iterator[QWidget]:
    """Everything to work with below `root`, without the inner parts of Qt's own controls."""
    for widget in root.findChildren(QWidget):
        inner = isinstance(widget, QScrollBar | QHeaderView) or widget.objectName().startswith("qt_")
        parent = widget.parentWidget()
        inner = inner or (isinstance(widget, QLineEdit) and isinstance(parent, QAbstractSpinBox | QComboBox))
        inner = inner or (isinstance(widget, QAbstractItemView) and "QComboBox" in parent.metaObject().className())
        if isinstance(widget, CONTROLS) and not inner:
            yield widget


def nameless(root: QWidget) -> list[str]:
    found = []
    for widget in controls(root):
        interface = QAccessible.queryAccessibleInterface(widget)
        name = interface.text(QAccessible.Text.Name) if interface is not None else widget.accessibleName()
        if not name.strip():
            found.append(f"{type(widget).__name__} {widget.objectName()} in {type(widget.parentWidget()).__name__}")
    return found


def enter(window: MainWindow, room: str) -> QWidget:
    window.actions_by_name[room].trigger()
    QApplication.processEvents()
    kept = {
        "library": lambda: window.rooms.shelf.dialog,
        "download": lambda: window.rooms.shelf.download,
        "shortcuts": lambda: window.findChild(QDialog, "shortcutSheet"),
        "system_prompt": lambda: window.findChild(QDialog, "systemDialog"),
    }
    shown = kept.get(room, lambda: getattr(window.rooms, room))()
    assert isinstance(shown, QWidget)
    return shown


def test_every_control_of_the_window_and_its_panels_has_a_name(qtbot: QtBot, loaded: MainWindow) -> None:
    for dock in loaded.docks.docks.values():
        dock.show()
        dock.raise_()
        QApplication.processEvents()
    assert not (found := nameless(loaded)), "\n".join(found)


@pytest.mark.parametrize("room", ROOMS)
def test_every_control_of_a_room_has_a_name_and_tab_reaches_it(qtbot: QtBot, window: MainWindow, room: str) -> None:
    shown = enter(window, room)
    assert nameless(shown) == []
    wanted = {
        widget
        for widget in controls(shown)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    assert wanted, "there is something to work with"
    start = next(iter(wanted))
    reached, at = {start}, start.nextInFocusChain()
    while at is not None and at is not start:
        reached.add(at)
        at = at.nextInFocusChain()
    assert wanted <= reached
    if room != "tour":
        qtbot.keyClick(shown, Qt.Key.Key_Escape)
        assert not shown.isVisible(), "Esc leaves"


def test_a_control_without_a_name_would_be_noticed(qtbot: QtBot, window: MainWindow) -> None:
    from PySide6.QtWidgets import QToolButton

    bare = QToolButton(window)
    assert len(nameless(window)) == 1
    bare.setAccessibleName("Bare")
    assert nameless(window) == []


def test_the_report_of_a_crash_and_the_question_before_deleting_have_names(qtbot: QtBot, window: MainWindow) -> None:
    from app.crash import CrashDialog

    shown = CrashDialog("Traceback", window)
    shown.show()
    assert nameless(shown) == []
    shown.close()


def test_a_message_is_seen_in_every_view(qtbot: QtBot, loaded: MainWindow) -> None:
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=10_000):
        loaded.send("hello")
    for _ in range(2):
        loaded.message_bar.show_message("Something went wrong; do something about it.")
        assert loaded.message_bar.isVisible()
        assert loaded.message_bar.visibleRegion().boundingRect().height() >= loaded.message_bar.height() - 1
        loaded.actions_by_name["reading_view"].trigger()
        QApplication.processEvents()
