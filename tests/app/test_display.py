"""A window that cannot be opened is announced in one sentence, before Qt could abort the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.display import display_problem

ROOT = Path(__file__).resolve().parents[2]


class Xcb:
    """A stand-in for the X library, whose server answers or does not."""

    def __init__(self, error: int) -> None:
        self._error = error

    def __getattr__(self, name: str) -> object:
        def call(*_arguments: object) -> int:
            return self._error if name == "xcb_connection_has_error" else 1

        return call


def test_no_display_is_said_with_the_way_out() -> None:
    problem = display_problem({}, "linux")
    assert problem.startswith("There is no display")
    assert "python -m engine generate demo" in problem


@pytest.mark.parametrize(
    ("environ", "platform"),
    [({"QT_QPA_PLATFORM": "offscreen"}, "linux"), ({"WAYLAND_DISPLAY": "w"}, "linux"), ({}, "darwin"), ({}, "win32")],
)
def test_where_qt_can_open_a_window_there_is_no_problem(environ: dict[str, str], platform: str) -> None:
    assert display_problem(environ, platform) == ""


def test_missing_system_libraries_are_named_by_their_packages() -> None:
    def load(name: str) -> object:
        if name == "libxcb-cursor.so.0":
            raise OSError(name)
        return Xcb(0)

    problem = display_problem({"DISPLAY": ":0"}, "linux", load)
    assert problem == "Qt's system libraries are missing; install them with: sudo apt install libxcb-cursor0"


@pytest.mark.parametrize(("error", "start"), [(0, ""), (1, "The display :7 does not answer")])
def test_a_display_that_does_not_answer(error: int, start: str) -> None:
    problem = display_problem({"DISPLAY": ":7"}, "linux", lambda _name: Xcb(error))
    assert problem.startswith(start)
    assert bool(problem) == bool(error)


def run_app(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    gone = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environ = {key: value for key, value in os.environ.items() if key not in gone} | changes
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
def test_the_program_ends_with_one_line_and_code_2() -> None:
    result = run_app()
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "no display" in result.stderr
    assert run_app(DISPLAY=":93").stderr.startswith(("The display :93 does not answer", "Qt's system libraries"))


def test_the_window_is_there_before_the_kernels_are_imported() -> None:
    code = "import sys, app.program; sys.exit('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("line", ["--prompt hi", "--model demo --prompt=", "--size wide", "--theme pink"])
def test_bad_usage_is_code_2(line: str) -> None:
    result = run_app(*line.split())
    assert result.returncode == 2
    assert "error:" in result.stderr
