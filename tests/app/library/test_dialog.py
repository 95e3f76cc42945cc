"""The library as a person uses it, mostly by keyboard."""

from __future__ import annotations

import shutil
from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.library.dialog import LibraryDialog
from app.library.hub.order import Order
from app.main_window import MainWindow
from app.theme import DARK
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.scripted import Script

VL = Path(__file__).parents[2] / "data" / "tiny-vl"


def open_library(qtbot: QtBot, window: MainWindow, *folders: Path) -> LibraryDialog:
    window.memory.change(folders=tuple(map(str, folders)))
    window.actions_by_name["library"].trigger()
    dialog = window.rooms.shelf.dialog
    assert dialog is not None
    qtbot.waitUntil(lambda: not window.rooms.shelf.catalogue.reading, timeout=PATIENCE_MS)
    return dialog


def test_search_and_enter_open_a_model(qtbot: QtBot, window: MainWindow, script: Script, models: Path) -> None:
    dialog = open_library(qtbot, window, models)
    names = [entry.report.name for entry in dialog.model.rows]
    assert names[:2] == ["a", "b"]
    dialog.search.setText(f"bf16 {models.name}/b")
    assert [entry.report.name for entry in dialog.model.rows] == ["b"]
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        qtbot.keyClick(dialog.search, Qt.Key.Key_Return)
    assert script.calls[-1] == "load b"
    assert not dialog.isVisible()
    assert window.memory.settings.recent[0].path == str(models / "b")


def test_a_model_opens_with_the_sidecar_that_was_chosen(
    qtbot: QtBot, window: MainWindow, script: Script, models: Path
) -> None:
    dialog = open_library(qtbot, window, models)
    dialog.list.setCurrentIndex(dialog.model.index(0))
    box = dialog.details.sidecar
    assert [box.itemText(i) for i in range(box.count())] == ["the checkpoint's own MTP layer", "mtp-tuned.safetensors"]
    box.setCurrentIndex(1)
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS) as told:
        dialog.details.open.click()
    assert told.args[0].sidecar == str(models / "a" / "mtp-tuned.safetensors")


def test_a_damaged_file_cannot_be_opened_and_delete_forgets_it(qtbot: QtBot, window: MainWindow, models: Path) -> None:
    dialog = open_library(qtbot, window, models)
    row = dialog.model.row_of(str(models / "broken.gguf"))
    assert row >= 0
    dialog.list.setCurrentIndex(dialog.model.index(row))
    assert not dialog.details.open.isEnabled()
    dialog.list.setFocus()
    qtbot.keyClick(dialog.list, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: dialog.model.row_of(str(models / "broken.gguf")) < 0, timeout=PATIENCE_MS)
    assert window.memory.settings.forgotten == (str(models / "broken.gguf"),)
    assert (models / "broken.gguf").exists()


def test_folders_are_invited_watched_and_given_up(qtbot: QtBot, make_window: MakeWindow, models: Path) -> None:
    window = make_window()
    dialog = open_library(qtbot, window)
    assert dialog.invitation.isVisible()
    dialog.folders_wanted.emit((models,))
    qtbot.waitUntil(lambda: dialog.model.row_of(str(models / "a")) >= 0, timeout=PATIENCE_MS)
    assert not dialog.invitation.isVisible()
    window.memory.save()
    assert make_window().memory.settings.folders == (str(models),)
    dialog.folders_menu.aboutToShow.emit()
    stop = next(a for a in dialog.folders_menu.actions() if a.text() == f"Stop watching {models.name}")
    stop.trigger()
    qtbot.waitUntil(lambda: dialog.model.row_of(str(models / "a")) < 0, timeout=PATIENCE_MS)
    assert window.memory.settings.folders == ()


def test_a_model_opens_with_the_vision_tower_that_was_chosen_or_without(
    qtbot: QtBot, window: MainWindow, models: Path
) -> None:
    """The tower lies beside a checkpoint that has one of its own; what was chosen last is proposed again."""
    shutil.copytree(VL, models / "seeing", ignore=shutil.ignore_patterns("goldens*", "images"))
    tower = str(models / "seeing" / "mmproj-tiny-vl-bf16.gguf")
    for chosen, expected in (
        (None, None),
        (Path(tower).name, tower),
        (None, tower),
        ("the checkpoint's own vision tower", None),
    ):
        dialog = open_library(qtbot, window, models)
        dialog.list.setCurrentIndex(dialog.model.index(dialog.model.row_of(str(models / "seeing"))))
        assert dialog.details.tower.count() == 2
        if chosen is not None:
            dialog.details.tower.setCurrentText(chosen)
        with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS) as told:
            dialog.details.open.click()
        assert told.args[0].mmproj == expected, chosen


def test_the_menu_of_models_leads_to_library_and_downloads(window: MainWindow) -> None:
    window.model_bar.menu.aboutToShow.emit()
    first = window.model_bar.menu.actions()[:2]
    assert first == [window.actions_by_name["library"], window.actions_by_name["download"]]
    first[1].trigger()
    assert window.rooms.shelf.download is not None
    window.model_bar.menu.aboutToShow.emit()  # again: the actions are not the menu's to delete
    assert window.model_bar.menu.actions()[0].text() == "&Library…"


def test_rooms_that_open_each_other_have_the_theme_of_now(qtbot: QtBot, window: MainWindow) -> None:
    """Whatever it was when they were made."""
    dialog = open_library(qtbot, window)
    window.set_theme_mode("dark")
    dialog.download_requested.emit()
    shelf = window.rooms.shelf
    assert shelf.download is not None
    shelf.download.wanted_in_library.emit(Order("a/b", "0" * 40, Path("/models"), ()))
    assert dialog.delegate.theme == DARK
