"""A start that fails says so: in a box for a person, on stderr for whoever started it, and with code 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.last_words import MOST_CHARACTERS, last_words

BROKEN_START = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox
import app.program
from app.__main__ import main

def find():
    for box in QApplication.topLevelWidgets():
        if isinstance(box, QMessageBox) and box.isVisible():
            print(box.text(), box.detailedText(), sep="\\n", flush=True)
            box.accept()

def broken(*_):
    QTimer.singleShot(0, find)
    raise ZeroDivisionError("a fault that nobody foresaw")

class Window(app.program.MainWindow):
    pass

setattr(Window, sys.argv[1], broken)
app.program.MainWindow = Window
print("came back with", main(sys.argv[2:]))
"""
WHERE = ["__init__", "_make_parts", "_restore"]
"""Nothing of the window is there; a part; all of it. The engine's thread runs in each case."""


def start(place: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BROKEN_START, place, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("place", WHERE)
def test_a_window_that_cannot_be_made_is_told_of_in_a_box(tmp_path: Path, place: str) -> None:
    done = start(place, "--settings-dir", str(tmp_path))
    said = "Draftscope has to end: ZeroDivisionError: a fault that nobody foresaw"
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(f"{said}\nDraftscope "), done.stdout
    assert done.stdout.count("Traceback") == 1
    assert "came back" not in done.stdout
    assert f"\n{said}\n" in done.stderr
    assert done.stderr.count("Traceback") == 1


def test_an_errand_has_no_box_to_wait_in(tmp_path: Path) -> None:
    for flags in (["--quit-when-done"], ["--screenshot", str(tmp_path / "a.png")]):
        done = start("__init__", "--settings-dir", str(tmp_path), "--model", "demo", *flags)
        assert done.returncode == 1, done.stderr
        assert done.stdout == ""
        assert done.stderr.endswith("Draftscope has to end: ZeroDivisionError: a fault that nobody foresaw\n")


def test_a_module_that_is_missing_is_told_of_too(tmp_path: Path) -> None:
    code = "import sys; sys.modules['app.style'] = None; from app.__main__ import main; main(sys.argv[1:])"
    arguments = ["--settings-dir", str(tmp_path), "--model", "demo", "--quit-when-done"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "Draftscope has to end: ModuleNotFoundError: import of app.style halted" in done.stderr


def test_a_long_reason_fits_and_is_plain_text(qtbot: QtBot, qapp: QApplication) -> None:
    seen: list[str] = []

    def look() -> None:
        (box,) = [w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.objectName() == "lastWords"]
        seen.extend((box.text(), box.detailedText()))
        box.accept()

    reason = "<b>bold</b>" + "x" * 5000
    QTimer.singleShot(0, look)
    with pytest.raises(SystemExit) as end, last_words(quiet=False, leave=sys.exit):
        raise ValueError(reason)
    assert end.value.code == 1
    assert "<b>bold</b>" in seen[0]
    assert len(seen[0]) < MOST_CHARACTERS + 50
    assert reason in seen[1]


def test_what_is_no_fault_passes() -> None:
    for end in (KeyboardInterrupt, SystemExit):
        with pytest.raises(end), last_words(quiet=False):
            raise end
    with last_words(quiet=False):
        pass
