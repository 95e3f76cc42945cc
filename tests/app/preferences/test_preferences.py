"""Preferences take effect, are remembered, and can be taken back."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.settings import LoadChoices
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.scripted import Script


def test_the_next_load_follows_and_the_next_start_remembers(
    qtbot: QtBot, make_window: MakeWindow, script: Script
) -> None:
    window = make_window()
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    dialog.threads.setValue(1)
    dialog.context.setValue(2048)
    options = window.engine.options_for(Path("/models/first"))
    assert (options.threads, options.context) == (1, 2048)
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.load(Path("/models/first"))
    window.memory.save()
    again = make_window()
    assert again.memory.settings.load == LoadChoices(1, 2048)
    dialog.show_values("light", 0.0, window.memory.settings.load)
    dialog._reset_load()
    assert window.memory.settings.load == LoadChoices()
    assert dialog.threads.value() == 0


def test_text_grows_and_goes_back_and_colours_change(qtbot: QtBot, make_window: MakeWindow) -> None:
    window = make_window()
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    usual = window.composer.edit.font().pointSizeF()
    dialog.font_size.setValue(20)
    assert window.composer.edit.font().pointSizeF() == 20
    dialog.theme.setCurrentIndex(2)
    assert window.memory.settings.theme == "dark"
    dialog._reset_look()
    assert window.composer.edit.font().pointSizeF() == usual
    assert window.memory.settings.theme == "system"
    assert window.memory.settings.font_size == 0
