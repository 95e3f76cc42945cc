"""Files from the desktop: what comes together is opened together."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.file_events import FileOpenings
from tests.app.conftest import PATIENCE_MS


def test_files_of_one_go_come_together_and_other_events_pass(qtbot: QtBot, qapp: QApplication) -> None:
    receiver = QObject()
    openings = FileOpenings(receiver, receiver)
    with qtbot.waitSignal(openings.opened, timeout=PATIENCE_MS) as got:
        for name in ("/models/a.gguf", "/models/mtp-a.gguf"):
            assert QApplication.sendEvent(receiver, QFileOpenEvent(name))
    assert got.args == [[Path("/models/a.gguf"), Path("/models/mtp-a.gguf")]]
    with qtbot.assertNotEmitted(openings.opened, wait=20):
        assert not openings.eventFilter(receiver, QEvent(QEvent.Type.ApplicationActivate))
        openings.release()
        QApplication.sendEvent(receiver, QFileOpenEvent("/models/b.gguf"))
