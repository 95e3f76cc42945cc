"""The start: what waits for the first paint, and what the first paint does not wait for."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import app.start
from app.drive import Errand
from app.main_window import MainWindow
from app.milestones import Milestones, process_began
from app.program import Request, run
from app.start import Start
from tests.app.conftest import DEMO, PATIENCE_MS, MakeWindow
from tests.app.scripted import Script

LATER = ("pyqtgraph", "numba", "llvmlite", "numpy", "pygments", "markdown_it", "tokenizers", "psutil", "PIL",
         "app.library.dialog", "app.library.catalogue", "app.preferences.dialog", "app.help.palette",
         "app.help.about_dialog", "app.help.doctor_dialog", "app.help.log_dialog")  # fmt: skip
"""What takes long to import, and rooms that nobody has entered."""
PROGRAM = """
import json, sys
from pathlib import Path
from app.drive import Errand
from app.program import Request, run
from engine import EngineError

def load(*_arguments, **_options):
    raise EngineError("enough")

def prepare():
    print(json.dumps([name for name in sys.argv[2:] if name in sys.modules]))

request = Request(Path(sys.argv[1]), Path("demo"), errand=Errand(quit=True))
code = run(request, load, lambda: Path("demo"), prepare)
print(json.dumps([code, request.milestones.names]))
"""


def test_the_first_paint_imports_nothing_that_can_wait(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), *LATER], capture_output=True, text=True, check=True, timeout=120
    )
    imported, end = (json.loads(line) for line in done.stdout.splitlines())
    assert imported == []
    assert end == [1, ["window made", "first paint"]], "the load failed, as it should here"


def test_the_model_is_loaded_after_the_paint_and_the_plots_are_made_after_the_load(
    tmp_path: Path, script: Script, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(tmp_path, DEMO, errand=Errand(quit=True))
    plots: list[bool] = []
    made = Start._prepare

    def prepare(start: Start) -> None:
        plots.append(start._window.inspector._stack is not None)
        made(start)
        plots.append(start._window.inspector._apart.isActive())

    monkeypatch.setattr(Start, "_prepare", prepare)
    sheet, quits = qapp.styleSheet(), qapp.quitOnLastWindowClosed()
    assert run(request, script.load_model, lambda: DEMO) == 0
    qapp.setQuitOnLastWindowClosed(quits)
    qapp.setStyleSheet(sheet)
    assert request.milestones.names == ["window made", "first paint", "model usable"]
    assert plots == [False, True]
    gc.unfreeze()  # as it was for the tests that follow


def test_a_window_that_is_not_painted_begins_all_the_same(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.start, "UNSEEN_MS", 20)
    window, milestones, begun = make_window(), Milestones(), []
    window.hide()
    start = Start(window, [lambda: begun.append(1)], milestones)
    with qtbot.waitSignal(start.ready, timeout=PATIENCE_MS):
        pass
    window.show()
    qtbot.waitUntil(lambda: milestones.names == ["first paint"], timeout=PATIENCE_MS)
    assert begun == [1], "once"


def test_a_load_that_fails_leaves_nothing_waiting(window: MainWindow, script: Script, qtbot: QtBot) -> None:
    script.load_problem = "No config.json here."
    start = Start(window, [lambda: window.load(DEMO)], Milestones())
    window.update()
    with qtbot.waitSignal(start.ready, timeout=PATIENCE_MS):
        pass
    frozen = gc.get_freeze_count()
    qtbot.waitUntil(lambda: window.inspector._whole is not None, timeout=PATIENCE_MS)
    assert 0 < frozen < gc.get_freeze_count(), "the collector walks over neither the program nor its plots"
    gc.unfreeze()


def test_milestones_count_once_and_are_told_one_a_line() -> None:
    milestones = Milestones()
    for name in ("first paint", "model usable", "first paint"):
        milestones.reach(name)
    lines = milestones.report().splitlines()
    assert [line.split("  ")[0] for line in lines] == ["first paint", "model usable"]
    assert all("ms CPU" in line for line in lines)


def test_when_the_process_began_is_known() -> None:
    import psutil

    begun = process_began()
    assert begun < time.time()
    assert abs(begun - psutil.Process().create_time()) < 2, "which knows it to the second"
