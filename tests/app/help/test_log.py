"""The log: bounded, in a file, and ready to be copied."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.help import log
from app.help.doctor_dialog import as_text, summary
from app.main_window import MainWindow
from engine import Finding, __version__
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import Script


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    log.stop()


def test_lines_go_to_the_buffer_and_to_a_file_and_the_buffer_is_bounded(tmp_path: Path) -> None:
    path = log.start(tmp_path / "logs")
    assert path is not None
    for number in range(log.LINES + 10):
        logging.getLogger("draftscope").info("line %d", number)
    assert len(log.BUFFER.lines) == log.LINES
    assert log.BUFFER.lines[-1].endswith(f"line {log.LINES + 9}")
    log.stop()
    assert path.read_text("utf-8").splitlines()[-1].endswith(f"line {log.LINES + 9}")


def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert log.start(tmp_path / "file" / "logs") is None


def test_loads_are_noted_and_the_report_names_the_version(qtbot: QtBot, window: MainWindow, script: Script) -> None:
    log.start(None)
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.load(Path("/models/first"))
    window.actions_by_name["log"].trigger()
    dialog = window.rooms.log
    assert dialog is not None
    assert "first is loaded" in dialog.text.toPlainText()
    dialog.copy.click()
    report = QGuiApplication.clipboard().text()
    assert f"Draftscope {__version__}" in report
    assert "first is loaded" in report
    logging.getLogger("draftscope").info("another line")
    qtbot.waitUntil(lambda: "another line" in dialog.text.toPlainText(), timeout=PATIENCE_MS)


def test_the_doctor_sums_up_and_is_copied(qtbot: QtBot, window: MainWindow) -> None:
    fine, missing = Finding("a", "1"), Finding("b", "none", "missing", "install it")
    assert summary([fine]) == "Everything is as it should be."
    assert summary([fine, missing]).startswith("1 thing is missing")
    assert as_text([missing]) == "✗ b  none  (install it)"
    window.actions_by_name["doctor"].trigger()
    assert window.rooms.doctor is not None
    window.rooms.doctor.copy.click()
    assert "numba" in QGuiApplication.clipboard().text()
    window.rooms.doctor.close()
