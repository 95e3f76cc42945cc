"""A run named on the command line: shown without a model, and a bad one said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.__main__ import parse
from app.drive import Errand
from app.program import Request, run
from app.runs.store import RunStore
from tests.app.chat import scripted_records
from tests.app.conftest import DEMO
from tests.app.runs.test_store import HEADER
from tests.app.scripted import Script


@pytest.fixture(autouse=True)
def as_before(qapp: QApplication) -> Iterator[None]:
    sheet, quits = qapp.styleSheet(), qapp.quitOnLastWindowClosed()
    yield
    qapp.setQuitOnLastWindowClosed(quits)
    qapp.setStyleSheet(sheet)


def go(folder: Path, script: Script, file: Path) -> int:
    errand = Errand(screenshot=folder / "shot.png", quit=True)
    request = Request(folder / "settings", run=file, theme="light", size=(1000, 700), errand=errand)
    return run(request, script.load_model, lambda: DEMO)


def test_a_run_is_pictured_without_a_model(tmp_path: Path, script: Script, qapp: QApplication) -> None:
    file = RunStore(tmp_path).write(HEADER, scripted_records.reply())
    assert go(tmp_path, script, file) == 0
    assert not QImage(str(tmp_path / "shot.png")).isNull()
    assert script.calls == []


def test_a_file_that_is_no_run_is_said(
    tmp_path: Path, script: Script, qapp: QApplication, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    assert go(tmp_path, script, tmp_path / "bad.jsonl") == 1
    assert "bad.jsonl is no trace" in capsys.readouterr().err


def test_a_run_and_a_model_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["--run", "a.jsonl", "--screenshot", "b.png"]).run == Path("a.jsonl")
    with pytest.raises(SystemExit):
        parse(["--run", "a.jsonl", "--model", "demo"])
    assert "--run" in capsys.readouterr().err


def test_named_files_stand_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["a.gguf", "mtp.gguf"]).files == [Path("a.gguf"), Path("mtp.gguf")]
    with pytest.raises(SystemExit):
        parse(["a.gguf", "--model", "demo"])
    assert "leave --model and --run out" in capsys.readouterr().err
