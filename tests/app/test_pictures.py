"""Pictures in the window with a real engine: what they take, smaller sizes, progress, and towers in other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy

import pytest
from PIL import Image
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QMenu, QPushButton
from pytestqt.qtbot import QtBot

import engine
from app.chat.cells import Note
from app.history.attachment_bar import AttachmentBar
from app.main_window import MainWindow
from app.settings import SettingsFile
from app.style import Stylist
from app.worker import EngineHandle
from engine import Finished
from engine.export.quantise import quantise

VL = Path(__file__).parents[1] / "data" / "tiny-vl"
TOWER = VL / "mmproj-tiny-vl-bf16.gguf"
PATIENCE_MS = 120_000
"""Kernels may have to be compiled."""


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint without a tower."""
    path = tmp_path_factory.mktemp("blind") / "tiny-vl-f32.gguf"
    quantise(VL, path, "F32")
    return path


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "noise.png"
    Image.effect_noise((900, 300), 80).convert("RGB").save(path)
    return path


MakeWindow = Callable[[], MainWindow]


@pytest.fixture
def make_window(qapp: QApplication, qtbot: QtBot, stylist: Stylist, tmp_path: Path) -> Iterator[MakeWindow]:
    """Windows on the real engine that share their settings."""
    windows: list[MainWindow] = []

    def make() -> MainWindow:
        file = SettingsFile(tmp_path / "settings")
        windows.append(MainWindow(EngineHandle(engine.load_model), file, stylist, lambda: Path("/demo")))
        windows[-1].show()
        windows[-1].panel.limit.setValue(12)
        return windows[-1]

    yield make
    for window in windows:
        end(window)
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qapp.processEvents()


def end(window: MainWindow) -> None:
    window.rooms.close()
    window.weights.close()
    window.engine.close()
    assert window.engine.wait(PATIENCE_MS)
    QApplication.processEvents()
    window.hide()
    window.deleteLater()


def load(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.load(path)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> Finished:
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS) as ended:
        window.send(text)
    assert isinstance(ended.args[0], Finished), ended.args[0]
    return ended.args[0]


def attach(qtbot: QtBot, window: MainWindow, picture: Path) -> QPushButton:
    """Drop a picture; returns the button that tells its size."""
    window.open_dropped([picture])
    cards = window.findChildren(AttachmentBar)[0]
    qtbot.waitUntil(lambda: bool(cards.attaching.sizes), timeout=PATIENCE_MS)
    return next(b for b in cards.findChildren(QPushButton) if b.accessibleName() == f"Size of {picture.name}")


def test_a_picture_tells_what_it_takes_and_goes_smaller_if_that_is_chosen(
    qtbot: QtBot, make_window: MakeWindow, picture: Path
) -> None:
    window = make_window()
    load(qtbot, window, VL)
    button = attach(qtbot, window, picture)
    assert button.text() == "30 tokens; 24 at 256 px"
    menu = button.menu()
    assert isinstance(menu, QMenu)
    lines = ["Send as it is, 900 × 300: 30 tokens", "Send at 256 px: 24 tokens"]
    assert [action.text() for action in menu.actions()] == lines
    whole = ask(qtbot, window, "what is it")
    attach(qtbot, window, picture).menu().actions()[1].trigger()
    attaching = window.files.attaching
    qtbot.waitUntil(lambda: attaching.files[0].longest == 256, timeout=PATIENCE_MS)
    window.new_chat()
    smaller = ask(qtbot, window, "what is it")
    assert whole.stats.prompt_tokens - smaller.stats.prompt_tokens == 6
    prompt = window.chats.tree.path[0].id
    assert window.chats.store.attachments(prompt)[0].longest == 256
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        window.controller.edit(prompt, "what is it")  # the choice stays with the picture
    assert window.chats.store.attachments(window.chats.tree.path[0].id)[0].longest == 256


def test_reading_a_picture_is_told_while_it_lasts(qtbot: QtBot, make_window: MakeWindow, picture: Path) -> None:
    window = make_window()
    load(qtbot, window, VL)
    attach(qtbot, window, picture)
    told: set[str] = set()

    def listen() -> None:
        notes = [entry.text for entry in window.transcript.entries if isinstance(entry, Note)]
        told.update(notes[-1:])
        window.controller.plots_due.emit()  # as the plots' timer does, only at every record
        told.add(f"status: {window.status.activity.text()}")

    window.controller.records.connect(lambda _records: listen())
    window.controller._pump._text.setInterval(0)
    ask(qtbot, window, "what is it")
    looking = {line for line in told if "ooking at noise.png: block" in line}
    assert {line.split(":")[0] for line in looking} >= {"Looking at noise.png", "status"}
    assert not any("Looking" in entry.text for entry in window.transcript.entries)


def test_a_tower_is_offered_loaded_and_remembered_for_its_checkpoint(
    qtbot: QtBot, make_window: MakeWindow, blind: Path, picture: Path, tmp_path: Path
) -> None:
    model = tmp_path / "models" / "blind.gguf"
    model.parent.mkdir()
    copy(blind, model)
    window = make_window()
    load(qtbot, window, model)
    window.open_dropped([picture])
    assert "cannot see pictures" in window.message_bar.text
    assert window.message_bar.remedy.text() == "Choose its mmproj file…"
    tower = Path(copy(TOWER, model.parent / "mmproj-blind.gguf"))
    window.send("what is it")
    assert window.message_bar.remedy.text() == "Load mmproj-blind.gguf"
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.message_bar.remedy.click()
    info = window.controller.model
    assert info is not None
    assert (info.vision, info.mmproj) == (True, str(tower))
    assert window.message_bar.text == ""
    assert ask(qtbot, window, "what is it").tokens
    end_settings(window)

    again = make_window()
    load(qtbot, again, model)
    assert again.controller.model is not None
    assert again.controller.model.mmproj == str(tower)
    again.model_bar.menu.aboutToShow.emit()
    leave_out = next(a for a in again.model_bar.menu.actions() if a.text() == "Go on without the vision tower")
    with qtbot.waitSignal(again.controller.loaded, timeout=PATIENCE_MS):
        leave_out.trigger()
    assert not again.controller.model.vision
    assert again.memory.settings.towers == {}


def end_settings(window: MainWindow) -> None:
    window.memory.save()


def test_a_remembered_tower_that_is_damaged_does_not_keep_its_checkpoint_from_being_loaded(
    qtbot: QtBot, make_window: MakeWindow, blind: Path, tmp_path: Path
) -> None:
    window = make_window()
    tower = tmp_path / "mmproj-x.gguf"
    copy(TOWER, tower)
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.open_dropped([blind, tower])
    assert window.memory.settings.towers == {str(blind): str(tower)}
    tower.write_bytes(b"GGUF")
    with qtbot.waitSignal(window.controller.load_failed, timeout=PATIENCE_MS):
        window.load(blind)
    assert "mmproj-x.gguf" in window.message_bar.text
    load(qtbot, window, blind)
    tower.unlink()
    assert window.towers.tower_for(blind) is None
