"""The whole program on an errand: it loads, asks, takes a picture, quits, and its exit code tells how that went."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt, QTimer, QTranslator
from PySide6.QtGui import QImage
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.drive import SETTLE_MS, Drive, Errand
from app.instance import socket_name
from app.main_window import MainWindow
from app.program import Request, run
from app.settings import Settings, SettingsFile
from app.status import drafting_text
from app.theme import DARK
from engine import DraftOptions
from tests.app.conftest import DEMO, PATIENCE_MS
from tests.app.scripted import Script
from tests.app.test_language import catalogue


@pytest.fixture(autouse=True)
def as_before(qapp: QApplication) -> Iterator[None]:
    sheet, quits, direction = qapp.styleSheet(), qapp.quitOnLastWindowClosed(), qapp.layoutDirection()
    yield
    for widget in qapp.topLevelWidgets():
        if isinstance(widget, MainWindow):
            widget.deleteLater()  # a program ends after its window; here each would be styled again and again
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qapp.setQuitOnLastWindowClosed(quits)
    qapp.setStyleSheet(sheet)
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()
    qapp.setLayoutDirection(direction)


def go(folder: Path, script: Script, errand: Errand, model: Path = DEMO, size: tuple[int, int] = (780, 600)) -> int:
    request = Request(folder / "settings", model, theme="dark", size=size, errand=errand)
    return run(request, script.load_model, lambda: DEMO)


def test_a_prompt_is_answered_and_pictured(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    picture = tmp_path / "window.png"
    assert go(tmp_path, script, Errand("What is the capital of France?", picture, True)) == 0
    assert script.asked[0][0].content == "What is the capital of France?"
    assert script.calls[-1] == "close demo"
    image = QImage(str(picture))
    assert (image.width(), image.height()) == (780, 600)
    blue = DARK.tint("accepted_mtp")
    colours = [image.pixelColor(x, y).name() for x in range(0, 780, 2) for y in range(0, 600, 2)]
    assert colours.count(blue) > 20, "accepted drafts are coloured"


def test_the_window_speaks_the_language_that_was_chosen(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    settings = tmp_path / "settings"
    SettingsFile(settings).save(Settings(language="ar"))
    catalogue(settings / "languages", "ar", {"Conversations": "المحادثات", "No model is loaded.": "لا يوجد نموذج."})
    assert go(tmp_path, script, Errand("", None, True)) == 0
    (window,) = [widget for widget in qapp.topLevelWidgets() if isinstance(widget, MainWindow)]
    assert window.docks.docks["show_chats"].windowTitle() == "المحادثات"
    assert window.docks.docks["show_runs"].windowTitle() == "Runs", "what the catalogue does not have"
    assert qapp.layoutDirection() is Qt.LayoutDirection.RightToLeft
    assert drafting_text(None, DraftOptions())[1] == "لا يوجد نموذج."


@pytest.mark.parametrize("language", ["system", "en", "ar"])
def test_without_a_catalogue_the_window_speaks_english(
    tmp_path: Path, script: Script, qapp: QApplication, language: str
) -> None:
    SettingsFile(tmp_path / "settings").save(Settings(language=language))
    assert go(tmp_path, script, Errand("", None, True)) == 0
    (window,) = [widget for widget in qapp.topLevelWidgets() if isinstance(widget, MainWindow)]
    assert window.docks.docks["show_chats"].windowTitle() == "Conversations"
    assert qapp.layoutDirection() is Qt.LayoutDirection.LeftToRight
    assert qapp.findChildren(QTranslator) == [], "nothing was loaded for it"


def test_a_picture_has_plots_that_a_busy_computer_makes_late(
    tmp_path: Path, script: Script, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.inspector.panel.InspectorPanel.prepare", lambda _panel: None)
    assert go(tmp_path, script, Errand("hello", tmp_path / "window.png", True), size=(1280, 800)) == 0
    (window,) = [widget for widget in qapp.topLevelWidgets() if isinstance(widget, MainWindow)]
    shown = [card for card in window.inspector.plots.cards[:2] if card._empty.isHidden()]
    assert shown == window.inspector.plots.cards[:2]


def test_a_polite_end_of_the_session_closes_the_window(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    script.hold_after = 1
    killer = threading.Thread(target=lambda: (script.started.wait(20), os.kill(os.getpid(), signal.SIGTERM)))
    before = signal.getsignal(signal.SIGTERM)
    killer.start()
    assert go(tmp_path, script, Errand("hello", None, False)) == 0
    killer.join(5)
    assert script.calls[-1] == "close demo"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_fault_in_the_engines_thread_is_reported(
    tmp_path: Path, script: Script, qapp: QApplication, capfd: pytest.CaptureFixture[str]
) -> None:
    script.raise_after = 1
    assert go(tmp_path, script, Errand("hello", None, True)) == 1
    assert "ZeroDivisionError: a fault that nobody foresaw" in capfd.readouterr().err


def test_without_a_prompt_the_loaded_window_is_pictured(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    assert go(tmp_path, script, Errand("", tmp_path / "window.png", True)) == 0
    assert (tmp_path / "window.png").exists()
    assert script.asked == []


def test_nothing_temporary_is_left(
    tmp_path: Path, script: Script, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert go(tmp_path, script, Errand("", None, True)) == 0
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("how", ["load", "reply", "picture"])
def test_a_failure_is_said_and_the_code_is_1(
    tmp_path: Path, script: Script, qapp: QApplication, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    script.load_problem = "No config.json in /models/empty." if how == "load" else ""
    script.fail_after = 1 if how == "reply" else None
    picture = tmp_path / ("missing folder" if how == "picture" else "") / "window.png"
    assert go(tmp_path, script, Errand("hello", picture, True)) == 1
    said = {"load": "No config.json", "reply": "Layer 3 gave NaN", "picture": "cannot be written"}[how]
    assert said in capfd.readouterr().err
    assert picture.exists() == (how != "picture"), "what the person would see is pictured too"


def test_files_of_the_command_line_are_opened_as_if_dropped(
    tmp_path: Path, script: Script, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A desktop starts the program with the files that were clicked; the demo does not push in before them."""
    opened: list[list[Path]] = []

    def note(window: MainWindow, paths: list[Path]) -> None:
        opened.append(paths)
        window.close()

    monkeypatch.setattr(MainWindow, "open_dropped", note)
    files = (Path("a.gguf"), Path("mtp-a.gguf"))
    request = Request(tmp_path / "settings", dropped=files, size=(780, 600), log_dir=None)
    assert run(request, script.load_model, lambda: DEMO) == 0
    assert opened == [list(files)]
    assert not [call for call in script.calls if call.startswith("load")]


def test_a_start_while_the_window_closes_opens_its_own(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    """A pass that takes long ends before the window does; files must not go to a program that is about to end."""
    script.deaf, script.hold_after = True, 1
    answers: list[bool] = []

    def answered() -> bool:
        socket = QLocalSocket()
        socket.connectToServer(socket_name(tmp_path / "settings"))
        return socket.waitForConnected(1000)

    def close_slowly() -> None:
        if not script.started.is_set():
            return
        timer.stop()
        (window,) = [widget for widget in qapp.topLevelWidgets() if isinstance(widget, MainWindow)]
        answers.append(answered())
        window.close()
        answers.append(answered())
        script.go.set()

    timer = QTimer(interval=50)
    timer.timeout.connect(close_slowly)
    timer.start()
    request = Request(tmp_path / "settings", DEMO, size=(780, 600), errand=Errand("hello", None, False), single=True)
    assert run(request, script.load_model, lambda: DEMO) == 0
    assert answers == [True, False]


def test_who_goes_on_by_hand_is_left_alone(loaded: MainWindow, qtbot: QtBot, recwarn: pytest.WarningsRecorder) -> None:
    drive = Drive(loaded, Errand())
    for text in ("Hello", "Go on"):
        with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
            loaded.send(text)
        qtbot.wait(2 * SETTLE_MS)
    assert drive.code == 0
    assert [str(w.message) for w in recwarn if w.category is RuntimeWarning] == []
