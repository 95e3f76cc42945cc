"""Preferences take effect, are remembered, and can be taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import LoadChoices, SettingsFile
from engine import demo_path, load_model
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.scripted import Script
from tests.app.test_language import catalogue


def test_the_next_load_follows_and_the_next_start_remembers(
    qtbot: QtBot, make_window: MakeWindow, script: Script
) -> None:
    window = make_window()
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    dialog.threads.setValue(1)
    dialog.context.setValue(2048)
    dialog.precision.setCurrentIndex(1)
    dialog.kv_cache.setCurrentIndex(2)
    options = window.engine.options_for(Path("/models/first"))
    assert (options.threads, options.context, options.precision, options.kv_cache) == (1, 2048, "q8", "q8")
    assert window.weights.panel.kv_for_next() == "q8"
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.load(Path("/models/first"))
    window.memory.save()
    again = make_window()
    assert again.memory.settings.load == LoadChoices(1, 2048, "q8", "q8")
    dialog.show_values("light", 0.0, window.memory.settings.load)
    dialog._reset_load()
    assert window.memory.settings.load == LoadChoices()
    assert dialog.threads.value() == 0
    assert (dialog.precision.currentIndex(), dialog.kv_cache.currentIndex()) == (0, 0)


def test_what_needs_another_load_says_so_and_offers_it(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    loaded.actions_by_name["preferences"].trigger()
    dialog = loaded.rooms.preferences
    assert dialog is not None
    assert not dialog.reload.isVisible()
    dialog.kv_cache.setCurrentIndex(1)
    assert dialog.reload.isVisible()
    with qtbot.waitSignal(loaded.controller.loaded, timeout=PATIENCE_MS):
        dialog.reload.click()
    assert script.calls.count("load first") == 2
    qtbot.waitUntil(lambda: not dialog.reload.isVisible(), timeout=PATIENCE_MS)
    dialog.kv_cache.setCurrentIndex(0)
    assert dialog.reload.isVisible()
    dialog.kv_cache.setCurrentIndex(1)
    assert not dialog.reload.isVisible(), "that is how it was opened"


def test_a_float_model_is_really_opened_at_another_precision(qtbot: QtBot, make_window: MakeWindow) -> None:
    """With the engine itself."""
    window = make_window()
    window.memory.change(load=LoadChoices(precision="q4", kv_cache="bf16", context=256))
    model = load_model(demo_path(), options=window.engine.options_for(demo_path()))
    try:
        assert "Q4_0" in model.info.formats
        assert model.info.context == 256
    finally:
        model.close()


def test_a_model_with_less_context_than_is_preferred_opens_with_its_own(make_window: MakeWindow) -> None:
    """What is preferred is for all models; it must not keep the small ones from being opened."""
    window = make_window()
    window.memory.change(load=LoadChoices(context=1 << 20))
    model = load_model(demo_path(), options=window.engine.options_for(demo_path()))
    try:
        assert model.info.context == 4096
    finally:
        model.close()


def test_colours_chosen_in_the_menu_are_shown_and_taken_back(window: MainWindow) -> None:
    window.set_theme_mode("system")
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    for mode in ("dark", "light", "system", "dark"):
        window.actions_by_name[f"theme_{mode}"].trigger()
        assert dialog.theme.currentData() == mode
        assert window.memory.settings.theme == mode
    dialog.restore_defaults()
    assert window.memory.settings.theme == "system"


def test_places_are_shown_and_downloads_can_go_elsewhere(
    qtbot: QtBot, make_window: MakeWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window()
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    opened: list[Path] = []
    monkeypatch.setattr("app.preferences.places.open_folder", opened.append)
    for button in dialog.places.findChildren(QPushButton):
        if button.isEnabled() and button.text() == "Open folder":
            button.click()
    assert tmp_path in opened, "conversations and settings"
    elsewhere = tmp_path / "large disk"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(elsewhere))
    next(b for b in dialog.places.findChildren(QPushButton) if b.text() == "Change…").click()
    assert window.memory.settings.download_folder == str(elsewhere)
    window.actions_by_name["download"].trigger()
    download = window.rooms.shelf.download
    assert download is not None
    assert download.where.text() == f"Into {elsewhere}"


def test_a_language_is_offered_by_its_own_name_and_spoken_from_the_next_start(
    make_window: MakeWindow, tmp_path: Path
) -> None:
    window = make_window()
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    assert names(dialog.language) == ["As the system", "English"]
    assert str(tmp_path / "languages") in dialog.language.accessibleDescription()
    catalogue(tmp_path / "languages", "de", {"Preferences": "Einstellungen"})
    catalogue(tmp_path / "languages", "ja", {"Preferences": "設定"})
    window.actions_by_name["preferences"].trigger()
    assert names(dialog.language) == ["As the system", "English", "Deutsch", "日本語"]
    assert dialog.language.currentIndex() == 0
    dialog.language.setCurrentIndex(2)
    assert dialog.windowTitle() == "Preferences", "not before the next start"
    assert window.memory.settings.language == "de"
    window.memory.save()
    assert make_window().memory.settings.language == "de"
    (tmp_path / "languages" / "de.mo").unlink()
    window.actions_by_name["preferences"].trigger()
    assert dialog.language.currentText() == "English", "which it has become"
    assert window.memory.settings.language == "de", "until the person chooses"


def names(box: QComboBox) -> list[str]:
    return [box.itemText(at) for at in range(box.count())]


def test_restoring_defaults_takes_back_this_window_and_nothing_else(qtbot: QtBot, window: MainWindow) -> None:
    before = window.memory.settings
    window.memory.change(
        font_size=20.0,
        load=LoadChoices(2, 512, "q8", "bf16"),
        download_folder="/elsewhere",
        folders=("/models",),
        language="en",
    )
    window.set_theme_mode("dark")
    window.actions_by_name["preferences"].trigger()
    dialog = window.rooms.preferences
    assert dialog is not None
    dialog.defaults.click()
    after = window.memory.settings
    assert (after.theme, after.font_size, after.load, after.download_folder) == ("system", 0.0, LoadChoices(), "")
    assert after.language == "system"
    assert after.folders == ("/models",)
    assert after.reply == before.reply


@pytest.mark.parametrize("bad", [{"precision": "q2"}, {"kv_cache": "f8"}, {"kv_cache": None}, {"precision": 8}])
def test_senseless_choices_in_the_file_are_left_out(tmp_path: Path, bad: dict[str, object]) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text(json.dumps({"load": {"threads": 2, **bad}}))
    assert file.load().load == LoadChoices(threads=2)


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
