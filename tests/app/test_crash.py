"""One report for each distinct traceback, to be copied."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from app.crash import CrashReporter


@pytest.fixture
def reporter(qtbot: QtBot) -> Iterator[CrashReporter]:
    before = sys.excepthook, threading.excepthook
    made = CrashReporter()
    yield made
    made.release()
    assert (sys.excepthook, threading.excepthook) == before
    for dialog in made.dialogs:
        dialog.close()
        dialog.deleteLater()


def crash(reporter: CrashReporter, message: str) -> None:
    try:
        raise ValueError(message)
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)


def test_the_same_fault_is_reported_once(reporter: CrashReporter, qtbot: QtBot) -> None:
    for message in ("first", "first", "second", "first"):
        crash(reporter, message)
    qtbot.waitUntil(lambda: len(reporter.dialogs) == 2)
    assert [("first" in d.report.toPlainText()) for d in reporter.dialogs] == [True, False]


def test_a_fault_in_another_thread_is_shown_in_the_windows_thread(reporter: CrashReporter, qtbot: QtBot) -> None:
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join(5)
    qtbot.waitUntil(lambda: len(reporter.dialogs) == 1)
    report = reporter.dialogs[0].report.toPlainText()
    assert "ZeroDivisionError" in report
    assert report.startswith("Draftscope ")


def test_the_report_can_be_copied(reporter: CrashReporter, qtbot: QtBot) -> None:
    crash(reporter, "copied")
    qtbot.waitUntil(lambda: len(reporter.dialogs) == 1)
    dialog = reporter.dialogs[0]
    (box,) = dialog.findChildren(QDialogButtonBox)
    next(button for button in box.buttons() if "Copy" in button.text()).click()
    assert QGuiApplication.clipboard().text() == dialog.report.toPlainText()
