"""The conversation: what is sent, what waits, what is kept, without a widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.chat.controller import ChatController
from app.history.chats import Chats
from app.history.store import Store
from app.pump import PLOTS_MS
from app.worker import EngineHandle
from engine import Failed, Finished, GenerateOptions, LoadProgress, Message, Round
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import WORDS, Script

SAID = " ".join(WORDS)


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    store = Store(tmp_path / "history.sqlite3")
    yield Chats(store)
    store.close()


@pytest.fixture
def chat(handle: EngineHandle, chats: Chats) -> ChatController:
    return ChatController(handle, GenerateOptions, chats)


def load(qtbot: QtBot, chat: ChatController, name: str = "first") -> None:
    with qtbot.waitSignal(chat.loaded, timeout=PATIENCE_MS):
        chat.load(Path("/models") / name, None)


def send(qtbot: QtBot, chat: ChatController, text: str = "hello") -> Finished | Failed:
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS) as blocker:
        assert chat.send(text)
    last = blocker.args[0]
    assert isinstance(last, Finished | Failed)
    return last


def test_every_record_arrives_once_and_in_order(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    script.words = [str(i) for i in range(3000)]
    seen: list[object] = []
    chat.records.connect(seen.extend)
    load(qtbot, chat)
    last = send(qtbot, chat)
    rounds = [record for record in seen if isinstance(record, Round)]
    assert [record.index for record in rounds] == list(range(len(rounds)))
    assert "".join(token.text for record in rounds for token in record.committed) == last.text == " ".join(script.words)
    assert seen[-1] is last


def test_the_conversation_grows_by_turns(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    load(qtbot, chat)
    send(qtbot, chat, "one")
    send(qtbot, chat, "two")
    assert script.asked[1] == (Message("user", "one"), Message("assistant", SAID), Message("user", "two"))


def test_regenerate_drops_the_last_reply_and_asks_the_same(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    load(qtbot, chat)
    send(qtbot, chat, "one")
    send(qtbot, chat, "two")
    dropped: list[bool] = []
    said: list[str] = []
    chat.reply_dropped.connect(lambda: dropped.append(True))
    chat.user_said.connect(said.append)
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        assert chat.regenerate()
    assert script.asked[2] == script.asked[1]
    assert (dropped, said) == ([True], [])
    assert len(chat.messages) == 4


def test_new_chat_keeps_nothing(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    load(qtbot, chat)
    send(qtbot, chat)
    chat.new_chat()
    assert (chat.messages, chat.empty) == ((), True)
    send(qtbot, chat, "again")
    assert script.asked[-1] == (Message("user", "again"),)
    assert script.calls.count("session") == 2


def test_a_stopped_reply_keeps_its_text(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    script.hold_after = 2
    load(qtbot, chat)
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        chat.send("hello")
        assert script.started.wait(5)
        chat.stop()
        assert chat.stopping
        assert chat.why_not_send() == "Stopping…"
    assert chat.messages[-1].content.startswith("The capital")
    assert not chat.stopping
    assert chat.why_not_send() == ""


def test_a_failed_reply_keeps_its_text_and_the_chat_goes_on(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    script.fail_after = 2
    load(qtbot, chat)
    assert isinstance(send(qtbot, chat, "one"), Failed)
    script.fail_after = None
    assert isinstance(send(qtbot, chat, "two"), Finished)
    assert [message.role for message in script.asked[-1]] == ["user", "assistant", "user"]


def test_a_prompt_that_failed_without_a_word_is_not_sent_again_with_the_next(
    qtbot: QtBot, chat: ChatController, script: Script
) -> None:
    script.fail_after = 0
    load(qtbot, chat)
    send(qtbot, chat, "far too long")
    script.fail_after = None
    assert chat.why_not_regenerate() == ""
    send(qtbot, chat, "short")
    assert script.asked[-1] == (Message("user", "short"),)


def test_a_prompt_waits_for_the_model(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    script.hold_load = True
    assert not chat.send("too early"), "without any model there is nothing to wait for"
    chat.load(Path("/models/first"), None)
    assert script.started.wait(5)
    assert chat.send("patient")
    assert chat.queued == "patient"
    assert not chat.send("second"), "one message waits at a time"
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        script.go.set()
    assert chat.queued is None
    assert chat.messages[0] == Message("user", "patient")


@pytest.mark.parametrize("how", ["fails", "is cancelled", "is taken back"])
def test_a_waiting_prompt_is_given_back(qtbot: QtBot, chat: ChatController, script: Script, how: str) -> None:
    script.hold_load = True
    script.load_problem = "The file is damaged." if how == "fails" else ""
    chat.load(Path("/models/first"), None)
    assert script.started.wait(5)
    chat.send("patient")
    with qtbot.waitSignal(chat.prompt_returned, timeout=PATIENCE_MS) as blocker:
        if how == "fails":
            script.go.set()
        elif how == "is cancelled":
            chat.stop()
        else:
            chat.take_back()
    assert blocker.args == ["patient", ()]
    assert chat.queued is None


def test_a_failed_load_keeps_the_model(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    load(qtbot, chat)
    script.load_problem = "No config.json in /models/second."
    with qtbot.waitSignal(chat.load_failed, timeout=PATIENCE_MS) as blocker:
        chat.load(Path("/models/second"), None)
    assert blocker.args == [script.load_problem]
    assert chat.model is not None
    assert chat.model.name == "first"
    assert isinstance(send(qtbot, chat), Finished)


def test_another_load_takes_the_place_of_one_under_way(
    qtbot: QtBot, handle: EngineHandle, chat: ChatController, script: Script
) -> None:
    script.hold_load = True
    told: list[str] = []
    chat.loaded.connect(lambda info: told.append(info.name))
    chat.load_cancelled.connect(lambda: told.append("cancelled"))
    chat.load(Path("/models/slow"), None)
    assert script.started.wait(5)
    with qtbot.waitSignal(handle.load_ended, timeout=PATIENCE_MS):
        chat.load(Path("/models/quick"), None)
    assert chat.loading, "the end of the one given up is not the end of the other"
    with qtbot.waitSignal(chat.loaded, timeout=PATIENCE_MS):
        script.go.set()
    assert told == ["quick"]
    assert not chat.loading


def test_loading_stops_a_reply_and_both_are_told(qtbot: QtBot, chat: ChatController, script: Script) -> None:
    load(qtbot, chat)
    script.hold_after = 1
    progress: list[LoadProgress] = []
    chat.load_progressed.connect(progress.append)
    chat.send("hello")
    assert script.started.wait(5)
    with qtbot.waitSignals([chat.reply_ended, chat.loaded], timeout=PATIENCE_MS, order="strict"):
        chat.load(Path("/models/second"), None)
    assert chat.model is not None
    assert chat.model.name == "second"
    assert progress[-1].done == 3


def test_a_new_chat_during_a_reply_hears_nothing_more_of_it(
    qtbot: QtBot, handle: EngineHandle, chat: ChatController, script: Script
) -> None:
    load(qtbot, chat)
    script.hold_after = 3
    chat.send("old")
    assert script.started.wait(5)
    seen: list[object] = []
    chat.records.connect(seen.extend)
    chat.reply_ended.connect(seen.append)
    with qtbot.waitSignal(handle.reply_ended, timeout=PATIENCE_MS):
        chat.new_chat()
        chat.send("new")
    assert chat.replying, "the end of the old reply is not the end of the new one"
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        script.go.set()
    assert [record.index for record in seen if isinstance(record, Round)] == [0, 1, 2, 3, 4, 5]
    assert chat.messages == (Message("user", "new"), Message("assistant", SAID))


def test_after_a_new_chat_nothing_is_heard_of_the_reply_that_ran(
    qtbot: QtBot, handle: EngineHandle, chat: ChatController, script: Script
) -> None:
    load(qtbot, chat)
    script.hold_after = 3
    chat.send("old")
    assert script.started.wait(5)
    seen: list[object] = []
    chat.records.connect(seen.extend)
    chat.reply_ended.connect(seen.append)
    with qtbot.waitSignal(handle.reply_ended, timeout=PATIENCE_MS):
        chat.new_chat()
    chat.plots_due.connect(lambda: seen.append("plots"))
    qtbot.wait(2 * PLOTS_MS)
    assert seen == []


def test_there_is_a_reason_whenever_nothing_can_be_done(qtbot: QtBot, chat: ChatController) -> None:
    assert "Choose a model" in chat.why_not_send()
    assert chat.why_not_regenerate() == "There is no reply yet."
    load(qtbot, chat)
    assert chat.why_not_send() == ""
    assert not chat.send("   ")
    chat.send("hello")
    assert "Esc stops it" in chat.why_not_send()
    assert not chat.regenerate()
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        pass
    assert chat.why_not_regenerate() == ""
