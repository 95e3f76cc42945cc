"""What is kept does not depend on the language of the window: settings, conversations, runs."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.language import Catalogue
from engine import SamplingOptions
from tests.app.chat.test_other_language import Quoted, texts
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.scripted import Script
from tests.app.test_main_window import ask


def test_a_start_in_english_finds_nothing_of_another_language(
    qapp: QApplication, qtbot: QtBot, make_window: MakeWindow, script: Script, tmp_path: Path
) -> None:
    """Replies that end in every way, a preset, a measurement and a proof, all in quotes; nothing of it in any file."""
    catalogue = Catalogue(Quoted(), qapp)
    qapp.installTranslator(catalogue)
    try:
        window = make_window()
        script.facts = {"recommended": SamplingOptions(temperature=0.6), "thinking": True, "vision": True}
        with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
            window.load(Path("/models/first"))
        for change in ({}, {"fail_after": 1}, {"raise_after": 1}, {"silent_end": True}):
            for name, value in change.items():
                setattr(script, name, value)
            ask(qtbot, window)
            for name in change:
                setattr(script, name, getattr(Script(), name))
        window.panel.presets.save("Mine")
        window.new_chat()
        script.hold_after = 2
        with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
            window.send("stopped")
            assert script.started.wait(5)
            window.stop()
        script.hold_after = None
        for task in ("measure_plain", "prove"):
            with qtbot.waitSignal(window.engine.task_ended, timeout=PATIENCE_MS):
                window.actions_by_name[task].trigger()
        assert "«" in window.transcript.plain_text()
        window.memory.save()
        with qtbot.waitSignal(window.closed, timeout=PATIENCE_MS):
            window.close()
    finally:
        qapp.removeTranslator(catalogue)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} >= {".json", ".jsonl", ".sqlite3"}
    assert [path.name for path in kept if "«".encode() in path.read_bytes()] == []
    again = make_window()
    assert "stopped" in again.transcript.plain_text()
    assert "Mine" in texts(again)
    assert {text for text in texts(again) | {again.transcript.plain_text()} if "«" in text} == set()
