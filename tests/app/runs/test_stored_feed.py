"""A conversation of the history has its rounds in the inspector, as if it had just been said."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

import app.runs.stored_feed
from app.chat.cells import CellKind
from app.main_window import MainWindow
from engine import Round
from tests.app.conftest import PATIENCE_MS, MakeWindow
from tests.app.scripted import Script


def answered(qtbot: QtBot, window: MainWindow, text: str) -> None:
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        window.send(text)


def reopened(qtbot: QtBot, window: MainWindow) -> list[Round]:
    """Leave the conversation and come back; returns what the inspector has then."""
    conversation = window.chats.current
    assert conversation is not None
    window.new_chat()
    assert window.inspector.model.rounds == 0
    with qtbot.waitSignal(window.runs.stored.ended, timeout=PATIENCE_MS):
        window.chats.open(conversation)
    return window.inspector.model.log


def test_the_rounds_of_all_replies_come_back_in_order(qtbot: QtBot, loaded: MainWindow) -> None:
    answered(qtbot, loaded, "one")
    answered(qtbot, loaded, "two")
    said = list(loaded.inspector.model.log)
    assert len(said) == 10
    assert reopened(qtbot, loaded) == said
    assert loaded.inspector.scrubber.last == 10
    qtbot.waitUntil(lambda: loaded.inspector.rounds.value.text() == "10", timeout=PATIENCE_MS)


def test_the_scrubber_goes_through_a_stored_reply_and_a_token_finds_its_round(qtbot: QtBot, loaded: MainWindow) -> None:
    answered(qtbot, loaded, "one")
    answered(qtbot, loaded, "two")
    reopened(qtbot, loaded)
    loaded.inspector.scrubber.go(2)
    moment = loaded.view.painter.moment
    assert moment is not None
    assert (moment.entry, moment.travel) == (1, True)
    loaded.inspector.scrubber.go(None)
    view, reply = loaded.view, loaded.transcript.replies[1]
    entry = next(i for i, e in enumerate(view.model.entries) if e is reply)
    cell = next(i for i in range(len(reply)) if reply.kind(i) is CellKind.CORRECTION)
    view.reveal(entry, cell)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.rect_of(entry, cell).center())
    number = loaded.inspector.scrubber.number
    assert number is not None
    assert number > 5
    assert loaded.inspector.model.log[number - 1] is reply.rounds[reply.round_of(cell)]


def test_what_is_said_next_goes_on_behind_them_also_after_the_next_start(
    qtbot: QtBot, loaded: MainWindow, make_window: MakeWindow
) -> None:
    answered(qtbot, loaded, "one")
    again = make_window()
    qtbot.waitUntil(lambda: again.inspector.model.rounds == 5 and not again.runs.stored.running, timeout=PATIENCE_MS)
    with qtbot.waitSignal(again.controller.loaded, timeout=PATIENCE_MS):
        again.open_demo()
    answered(qtbot, again, "two")
    assert again.inspector.model.rounds == 10


def test_only_the_newest_rounds_of_a_long_conversation_are_read_a_few_at_a_time(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(qtbot, loaded, "one")
    answered(qtbot, loaded, "two")
    said = list(loaded.inspector.model.log)
    monkeypatch.setattr(app.runs.stored_feed, "MOST_ROUNDS", 8)  # six of the second reply, two of the first
    monkeypatch.setattr(app.runs.stored_feed, "SLICE", 3)
    slices: list[list[Round]] = []
    loaded.runs.stored.read.connect(slices.append)
    assert reopened(qtbot, loaded) == said[-7:]
    assert [len(some) for some in slices] == [2, 3, 3]


def test_another_conversation_stops_the_reading_of_the_first(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(qtbot, loaded, "one")
    monkeypatch.setattr(app.runs.stored_feed, "SLICE", 1)
    conversation = loaded.chats.current
    assert conversation is not None
    loaded.new_chat()
    loaded.chats.open(conversation)
    qtbot.waitUntil(lambda: loaded.inspector.model.rounds > 0, timeout=PATIENCE_MS)
    loaded.new_chat()
    assert not loaded.runs.stored.running
    qtbot.wait(50)
    assert loaded.inspector.model.rounds == 0


def test_rounds_of_the_history_wait_behind_an_open_run(
    qtbot: QtBot, loaded: MainWindow, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(qtbot, loaded, "one")
    qtbot.waitUntil(lambda: bool(loaded.runs.store.summaries()), timeout=PATIENCE_MS)
    conversation = loaded.chats.current
    assert conversation is not None
    script.words = script.words[:4]
    loaded.new_chat()
    answered(qtbot, loaded, "shorter")
    qtbot.waitUntil(lambda: len(loaded.runs.store.summaries()) == 2, timeout=PATIENCE_MS)
    monkeypatch.setattr(app.runs.stored_feed, "DELAY_MS", 0)
    loaded.chats.open(conversation)
    newest = max(loaded.runs.store.summaries(), key=lambda summary: summary.path.stat().st_mtime_ns)
    loaded.runs.open_path(newest.path)
    of_run = list(loaded.inspector.model.log)
    qtbot.waitUntil(lambda: not loaded.runs.stored.running, timeout=PATIENCE_MS)
    assert loaded.inspector.model.log == of_run
    loaded.runs.show_chat()
    assert loaded.inspector.model.rounds == 5
