"""Budgets in the window: remembered per checkpoint, changed without loading again, survived when the disk fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from engine import OptionError, ReadError, Stall
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import Script

PATH = Path("/models/first")


def change(qtbot: QtBot, window: MainWindow, budget: object) -> None:
    with qtbot.waitSignal(window.engine.task_ended, timeout=PATIENCE_MS):
        window.weights.panel.budget_chosen.emit(budget)


def test_a_model_is_loaded_with_an_automatic_budget(loaded: MainWindow, script: Script) -> None:
    assert [options.memory_budget for options in script.load_options] == ["auto"]


def test_another_budget_is_taken_over_without_loading_and_remembered(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    change(qtbot, loaded, 5_000_000)
    assert script.calls[-1] == "budget 5000000"
    assert script.calls.count("load first") == 1
    with qtbot.waitSignal(loaded.controller.loaded, timeout=PATIENCE_MS):
        loaded.load(PATH)
    assert script.load_options[-1].memory_budget == 5_000_000
    change(qtbot, loaded, "auto")
    assert dict(loaded.memory.settings.budgets) == {}


@pytest.mark.parametrize("named", ["first", "./first", "here/../first"])
def test_what_is_remembered_is_found_by_any_name_of_the_file(
    qtbot: QtBot, window: MainWindow, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """The command line may name it from the present folder."""
    monkeypatch.chdir(tmp_path)
    whole, tower = str(tmp_path / "first"), tmp_path / "mmproj.gguf"
    tower.touch()
    window.memory.change(budgets={whole: 5_000_000}, towers={whole: str(tower)})
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS) as told:
        window.load(Path(named))
    assert script.load_options[-1].memory_budget == 5_000_000
    assert (told.args[0].path, told.args[0].mmproj) == (whole, str(tower))
    assert window.memory.settings.recent[0].path == whole


def test_a_budget_that_is_too_small_is_told_and_forgotten(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    script.budget_problems = [OptionError("The memory budget is 1 MB, but this model needs at least 2 MB.")]
    change(qtbot, loaded, 1_000_000)
    assert "needs at least" in loaded.message_bar.text
    assert dict(loaded.memory.settings.budgets) == {}


def test_a_disk_that_fails_meanwhile_leaves_the_least_that_works(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    script.budget_problems = [ReadError("Reading model.safetensors at byte 4096 failed.")]
    change(qtbot, loaded, None)
    assert [call for call in script.calls if call.startswith("budget")] == ["budget None", "budget None"]
    assert "byte 4096" in loaded.message_bar.text


def test_loading_with_a_budget_from_the_plan(qtbot: QtBot, window: MainWindow, script: Script) -> None:
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.weights.panel.load_requested.emit(PATH, None, None)
    assert script.load_options[-1].memory_budget is None
    assert dict(window.memory.settings.budgets) == {str(PATH): None}


def test_a_long_pass_and_a_stall_are_said_in_the_status_line(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    script.hold_after = 2
    script.layer = 3
    loaded.controller.send("hello")
    qtbot.waitUntil(lambda: loaded.transcript.plain_text().count(" ") > 3, timeout=PATIENCE_MS)
    loaded.weights.watch._heard -= 60  # a minute without a record
    qtbot.waitUntil(lambda: "layer 4 of 8" in loaded.status.activity.text(), timeout=PATIENCE_MS)
    script.stalled(Stall("layers.3", "model.safetensors", 8192, 30.0))
    qtbot.waitUntil(lambda: "nothing for 30 s" in loaded.status.activity.text(), timeout=PATIENCE_MS)
    assert "model.safetensors at byte 8,192" in loaded.status.activity.text()
    loaded.stop()
    qtbot.waitUntil(lambda: not loaded.controller.replying, timeout=PATIENCE_MS)
