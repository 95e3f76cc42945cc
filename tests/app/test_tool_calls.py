"""Tool calls in the window: a block of their own in both views and in every export; text where they make no sense."""

from __future__ import annotations

import html
import json
import re

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.cells import Note
from app.history.export import as_html, as_json, as_markdown
from app.history.export_pictures import PictureFolder
from app.main_window import MainWindow
from app.reading.markdown import COPY
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import Script

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich", "days": 3}}\n</tool_call>'
BROKEN = "<tool_call>\n{weather <b>}\n</tool_call>"
PRETTY = '{\n  "city": "Zürich",\n  "days": 3\n}'


@pytest.fixture
def called(qtbot: QtBot, loaded: MainWindow, script: Script) -> MainWindow:
    """A window in whose chat the model called a tool, and another time only tried to."""
    script.words = f"I look. {CALL} and {BROKEN} so.".split(" ")
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        loaded.send("How is the weather?")
    return loaded


def notes(window: MainWindow) -> list[str]:
    return [e.text for e in window.transcript.entries if isinstance(e, Note) and e.tone == "call"]


def test_a_call_stands_below_its_tokens_also_when_the_conversation_is_opened_again(called: MainWindow) -> None:
    expected = [f"Tool call: weather (shown, not executed)\n{PRETTY}"]
    assert notes(called) == expected
    conversation = called.chats.current
    assert conversation is not None
    called.new_chat()
    assert notes(called) == []
    called.chats.open(conversation)
    assert notes(called) == expected


def test_a_call_stands_in_its_place_when_the_reply_is_read_and_its_arguments_can_be_copied(called: MainWindow) -> None:
    called.switch_view()
    called.reading.catch_up()
    kinds = [piece.kind for piece in called.reading.pieces]
    assert kinds == ["user", "answer", "call", "answer", "note"]
    text = called.reading.document(2).toPlainText()
    assert "weather" in text
    assert "shown, not executed" in text
    assert '"city": "Zürich"' in text
    assert "{weather <b>}" in called.reading.document(3).toPlainText()
    called.reading.follow(2, f"{COPY}0")
    assert QGuiApplication.clipboard().text() == PRETTY


def test_a_call_is_a_block_in_every_export(called: MainWindow) -> None:
    entries = called.transcript.entries
    markdown = as_markdown("Weather", entries, PictureFolder("files"))
    assert f"**Tool call: `weather`** (shown, not executed)\n\n```json\n{PRETTY}\n```" in markdown
    assert CALL not in markdown
    assert BROKEN in markdown
    message = json.loads(as_json("Weather", entries, PictureFolder("files")))["messages"][1]
    call = {"name": "weather", "arguments": {"city": "Zürich", "days": 3}, "executed": False}
    assert message["tool_calls"] == [call]
    page = as_html("Weather", entries)
    assert page.count("Tool call: <b>weather</b> <small>shown, not executed</small><pre>{\n") == 1
    assert "&lt;b&gt;" in page
    assert html.escape(BROKEN) in re.sub(r"</?span[^>]*>|<del.*?</del>", "", page)
