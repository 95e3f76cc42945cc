"""A window on a scripted engine, with a real engine thread and a real event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import SettingsFile
from app.style import Stylist
from app.worker import EngineHandle
from tests.app.scripted import Script

PATIENCE_MS = 10_000
DEMO = Path("/models/demo")


@pytest.fixture(scope="session")
def stylist(qapp: QApplication) -> Stylist:
    return Stylist(qapp, "light")


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def handle(qapp: QApplication, script: Script) -> Iterator[EngineHandle]:
    handle = EngineHandle(script.load_model)
    yield handle
    script.go.set()
    handle.close()
    assert handle.wait(PATIENCE_MS), "the engine thread did not end"
    qapp.processEvents()


MakeWindow = Callable[[], MainWindow]


@pytest.fixture
def make_window(
    qapp: QApplication, qtbot: QtBot, script: Script, stylist: Stylist, tmp_path: Path
) -> Iterator[MakeWindow]:
    """Makes windows that share one settings folder, as one start of the program after another does."""
    windows: list[MainWindow] = []

    def make() -> MainWindow:
        window = MainWindow(EngineHandle(script.load_model), SettingsFile(tmp_path), stylist, lambda: DEMO)
        windows.append(window)
        window.show()
        qtbot.waitExposed(window)
        return window

    yield make
    script.go.set()
    for window in windows:
        window.rooms.close()
        window.engine.close()
        assert window.engine.wait(PATIENCE_MS), "the engine thread did not end"
        qapp.processEvents()
        window.hide()
        window.deleteLater()
    stylist.set_mode("light")
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qapp.processEvents()


@pytest.fixture
def window(make_window: MakeWindow) -> MainWindow:
    return make_window()


@pytest.fixture
def loaded(window: MainWindow, qtbot: QtBot) -> MainWindow:
    """A window with the scripted model in it."""
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.load(Path("/models/first"))
    return window
