"""Downloading as a person does it, in the whole window, with the real client and a hub on this computer."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.library.hub.dialog import HubDialog
from app.main_window import MainWindow
from engine import demo_path
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.library.hub.server import Hub, Repo
from tests.app.test_accessibility import nameless


@pytest.fixture
def demo(hub: Hub) -> str:
    """The demo checkpoint as a repository."""
    files = {path.name: path.read_bytes() for path in demo_path().iterdir() if path.suffix in (".json", ".safetensors")}
    hub.repos["someone/storyteller"] = Repo({name: data for name, data in files.items() if not name.startswith("mtp")})
    return "someone/storyteller"


def open_dialog(window: MainWindow) -> HubDialog:
    window.actions_by_name["download"].trigger()
    dialog = window.rooms.shelf.download
    assert dialog is not None
    return dialog


def look(qtbot: QtBot, dialog: HubDialog, text: str) -> None:
    dialog.field.setText(text)
    dialog.field.setFocus()
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    qtbot.waitUntil(dialog.ask.isEnabled, timeout=PATIENCE_MS)


def test_from_words_to_a_model_in_the_library(
    qtbot: QtBot, window: MainWindow, hub: Hub, demo: str, tmp_path: Path
) -> None:
    dialog = open_dialog(window)
    assert hub.requests == [], "opening the dialog asks nothing"
    look(qtbot, dialog, "story")
    qtbot.keyClick(dialog.hits, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(dialog.chosen), timeout=PATIENCE_MS)
    assert [part.kind for part in dialog.chosen] == ["model"]
    assert not hub.fetched("config.json"), "sizes are shown before anything is fetched"
    assert dialog.sum.text().startswith("Chosen: ")
    dialog.fetch.click()
    (row,) = dialog.rows
    qtbot.waitUntil(row.show_in_library.isVisible, timeout=PATIENCE_MS)
    assert row.words.text().endswith("every checksum right")
    row.show_in_library.click()
    library = window.rooms.shelf.dialog
    assert library is not None
    home = tmp_path / "models" / "someone" / "storyteller"
    qtbot.waitUntil(
        lambda: library.details.entry is not None and library.details.entry.path == home, timeout=PATIENCE_MS
    )
    assert library.details.open.isEnabled()
    assert window.memory.settings.folders == (str(tmp_path / "models"),)


def test_pause_and_another_start_and_discard(
    qtbot: QtBot, make_window: MakeWindow, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.hold_at = 100_000
    window = make_window()
    dialog = open_dialog(window)
    look(qtbot, dialog, "someone/tiny-GGUF")
    dialog.fetch.click()
    (row,) = dialog.rows
    qtbot.waitUntil(hub.held.is_set, timeout=PATIENCE_MS)
    row.go.click()
    hub.go.set()
    qtbot.waitUntil(lambda: row.go.text() == "Resume" and row.go.isEnabled(), timeout=PATIENCE_MS)
    window.rooms.close()
    second = make_window()
    second.actions_by_name["library"].trigger()
    library = second.rooms.shelf.dialog
    assert library is not None
    assert library.download_button.text() == "Downloads: 1 unfinished…"
    again = open_dialog(second)
    (left,) = again.rows
    assert left.words.text().startswith("Paused at ")
    assert left.meter.value() > 0
    assert nameless(again) == []
    left.drop.click()
    assert left.question is not None
    delete = next(button for button in left.question.findChildren(QPushButton) if button.text() == "Delete")
    delete.click()
    qtbot.waitUntil(lambda: again.rows == [], timeout=PATIENCE_MS)


def test_an_error_stays_readable_and_the_window_goes_on(qtbot: QtBot, window: MainWindow, hub: Hub) -> None:
    dialog = open_dialog(window)
    look(qtbot, dialog, "someone/nothing")
    assert "was not found" in dialog.said.text()
    assert not dialog.fetch.isEnabled()


def test_what_does_not_fit_cannot_be_started(qtbot: QtBot, window: MainWindow, hub: Hub) -> None:
    listed = hub.repos["someone/tiny-GGUF"]

    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 60

    listed.announced["tiny-Q4_K_M.gguf"] = Huge(b"x")
    dialog = open_dialog(window)
    look(qtbot, dialog, "someone/tiny-GGUF")
    assert "That does not fit" in dialog.sum.text()
    assert not dialog.fetch.isEnabled()


def test_a_download_goes_on_without_its_window_and_tells_how_it_ended(
    qtbot: QtBot, window: MainWindow, hub: Hub, demo: str
) -> None:
    hub.hold_at = 50_000
    dialog = open_dialog(window)
    look(qtbot, dialog, demo)
    dialog.fetch.click()
    qtbot.waitUntil(hub.held.is_set, timeout=PATIENCE_MS)
    dialog.close()
    window.actions_by_name["library"].trigger()
    library = window.rooms.shelf.dialog
    assert library is not None
    qtbot.waitUntil(lambda: library.download_button.text().startswith("Downloading: "), timeout=PATIENCE_MS)
    library.close()
    hub.go.set()
    qtbot.waitUntil(lambda: "is in the library" in window.message_bar.text, timeout=PATIENCE_MS)
    assert library.download_button.text() == "Download…"
    window.message_bar.remedy.click()
    assert library.isVisible()


def test_a_download_that_fails_without_its_window_says_so(qtbot: QtBot, window: MainWindow, hub: Hub) -> None:
    dialog = open_dialog(window)
    look(qtbot, dialog, "someone/secret")
    dialog.fetch.click()
    dialog.close()
    qtbot.waitUntil(lambda: "is gated" in window.message_bar.text, timeout=PATIENCE_MS)
    assert window.message_bar.text.startswith("The download of someone/secret waits.")
    window.message_bar.remedy.click()
    assert dialog.isVisible()
