"""What is saved gets its ending, and nothing is replaced that nobody was asked about."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.saving import place_of
from tests.app.test_main_window import ask

Button = QMessageBox.StandardButton


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Questions, all of which are answered by No."""
    questions: list[str] = []

    def question(_parent: QWidget, _title: str, text: str) -> QMessageBox.StandardButton:
        questions.append(text)
        return Button.No

    monkeypatch.setattr(QMessageBox, "question", question)
    return questions


def choose(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("a.md", "a.md"), ("a.HTML", "a.HTML"), ("a", "a.md"), ("version 1.5", "version 1.5.md"), (".md", ".md.md")],
)
def test_the_ending(tmp_path: Path, asked: list[str], qtbot: QtBot, chosen: str, expected: str) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    assert place_of(parent, str(tmp_path / chosen), {".md", ".html"}, ".md") == tmp_path / expected
    assert asked == []


def test_an_export_replaces_no_file_unasked(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, loaded)
    kept = tmp_path / "talk 1.5.md"
    kept.write_text("another")
    choose(monkeypatch, tmp_path / "talk 1.5")
    loaded.actions_by_name["export_chat"].trigger()
    assert asked == ["talk 1.5.md is there already. Replace it?"]
    assert kept.read_text() == "another"
    monkeypatch.setattr(QMessageBox, "question", lambda *_: Button.Yes)
    loaded.actions_by_name["export_chat"].trigger()
    assert "hello" in kept.read_text("utf-8")


def test_a_plot_replaces_no_file_unasked(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded.inspector.prepare()
    qtbot.waitUntil(lambda: loaded.inspector.plots is not None and len(loaded.inspector.plots.cards) > 0)
    card = loaded.inspector.plots.cards[0]
    (tmp_path / "v1.csv").write_text("another")
    choose(monkeypatch, tmp_path / "v1.5")
    card._ask_and_save("CSV")
    assert (tmp_path / "v1.csv").read_text() == "another"
    assert (tmp_path / "v1.5.csv").exists()
    assert asked == []
    card._ask_and_save("CSV")
    assert asked == ["v1.5.csv is there already. Replace it?"]
