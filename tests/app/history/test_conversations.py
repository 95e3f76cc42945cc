"""Conversations as a person goes through them, without a display: branches, going on, coming back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.chat.cells import Note, Reply, UserMessage
from app.chat.controller import ChatController
from app.history.chats import INTERRUPTED, Chats, quoted
from app.history.list_model import ConversationList, Role, day_name
from app.history.store import Attachment, Store
from app.worker import EngineHandle
from engine import GenerateOptions, Message
from tests.app.conftest import PATIENCE_MS
from tests.app.history.conftest import say
from tests.app.scripted import WORDS, Script

SAID = " ".join(WORDS)


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    store = Store(tmp_path / "history.sqlite3")
    yield Chats(store)
    store.close()


@pytest.fixture
def chat(qtbot: QtBot, handle: EngineHandle, chats: Chats) -> ChatController:
    controller = ChatController(handle, GenerateOptions, chats)
    with qtbot.waitSignal(controller.loaded, timeout=PATIENCE_MS):
        controller.load(Path("/models/first"), None)
    return controller


def ask(qtbot: QtBot, chat: ChatController, text: str, files: tuple[Attachment, ...] = ()) -> None:
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        assert chat.send(text, files)


def said(chats: Chats) -> list[str]:
    return [row.content for row in chats.tree.path]


def test_what_was_said_is_there_at_the_next_start(qtbot: QtBot, chat: ChatController, chats: Chats) -> None:
    ask(qtbot, chat, "one")
    again = Chats(Store(chats.store.path))
    again.start()
    assert said(again) == ["one", SAID]
    user, reply, note = again.entries()
    assert isinstance(user, UserMessage)
    assert isinstance(reply, Reply)
    assert isinstance(note, Note)
    assert reply.text == SAID
    assert again.title == "one"
    again.store.close()


def test_editing_makes_a_branch_and_both_can_be_shown(
    qtbot: QtBot, chat: ChatController, chats: Chats, script: Script
) -> None:
    ask(qtbot, chat, "one")
    ask(qtbot, chat, "two")
    first = chats.tree.path[0].id
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        assert chat.edit(first, "other")
    assert said(chats) == ["other", SAID]
    assert script.asked[-1] == (Message("user", "other"),)
    assert chat.show_branch(chats.tree.path[0].id, -1)
    assert said(chats) == ["one", SAID, "two", SAID]
    assert not chat.show_branch(first, -1)


def test_regenerating_in_the_middle_branches_there(qtbot: QtBot, chat: ChatController, chats: Chats) -> None:
    ask(qtbot, chat, "one")
    ask(qtbot, chat, "two")
    reply = chats.tree.path[1].id
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        assert chat.regenerate(reply)
    assert said(chats) == ["one", SAID]
    assert len(chats.tree.branches(chats.tree.path[1].id)) == 2


def test_a_reply_that_was_stopped_goes_on_after_its_tokens(
    qtbot: QtBot, chat: ChatController, chats: Chats, script: Script
) -> None:
    script.hold_after = 2
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        chat.send("one two")
        assert script.started.wait(5)
        chat.stop()
    before = said(chats)[-1]
    tokens = chats.store.rounds.tokens(chats.tree.path[-1].id)
    assert SAID.startswith(before)
    assert chat.why_not_continue() == ""
    script.hold_after, script.words = None, ["", "and", "so", "on."]
    with qtbot.waitSignal(chat.reply_ended, timeout=PATIENCE_MS):
        assert chat.go_on()
    assert said(chats)[-1] == f"{before} and so on."
    assert script.completed[-1] == (3, 3, *tokens)
    assert chat.why_not_continue() == "The reply is complete."


def test_deleting_a_message_can_be_undone(qtbot: QtBot, chat: ChatController, chats: Chats) -> None:
    ask(qtbot, chat, "one")
    ask(qtbot, chat, "two")
    undo = chat.delete_message(chats.tree.path[2].id)
    assert said(chats) == ["one", SAID]
    assert undo is not None
    undo()
    assert said(chats) == ["one", SAID, "two", SAID]


def test_files_and_the_system_prompt_reach_the_model(
    qtbot: QtBot, chat: ChatController, chats: Chats, script: Script
) -> None:
    chats.set_system("Be brief.")
    notes, cat = Attachment("text", "notes.txt", b"a ``` b\n"), Attachment("picture", "cat.png", b"\x89PNG")
    ask(qtbot, chat, "look", (notes, cat))
    system, user = script.asked[-1]
    assert system == Message("system", "Be brief.")
    assert user.content == "notes.txt:\n````\na ``` b\n````\n\nlook"
    assert [(picture.name, picture.data) for picture in user.images] == [("cat.png", b"\x89PNG")]
    chats.new()
    assert chats.system == "Be brief."
    ask(qtbot, chat, "hello")
    assert chats.system == "Be brief."
    assert quoted(notes).startswith("notes.txt:\n````\n")


def test_what_is_being_written_belongs_to_its_conversation(qtbot: QtBot, chat: ChatController, chats: Chats) -> None:
    ask(qtbot, chat, "one")
    first = chats.current
    assert first is not None
    chats.keep_unsent("half")
    chats.new()
    assert chats.unsent == ""
    chats.keep_unsent("new half")
    chats.open(first)
    assert chats.unsent == "half"
    chats.new()
    assert chats.unsent == "new half"


def test_a_reply_goes_on_being_written_down_when_another_conversation_is_opened(
    qtbot: QtBot, chat: ChatController, chats: Chats, script: Script, handle: EngineHandle
) -> None:
    script.hold_after = 2
    chat.send("one")
    assert script.started.wait(5)
    first = chats.current
    assert first is not None
    chats.new()
    assert said(chats) == []
    qtbot.waitUntil(lambda: not handle.busy, timeout=PATIENCE_MS)
    chats.open(first)
    assert said(chats)[1].startswith("The")


def test_a_killed_reply_says_so(chats: Chats) -> None:
    conversation = chats.store.create()
    prompt = chats.store.add_user(conversation, None, "hello")
    chats.store.add_reply(conversation, prompt.id, "demo")
    chats.store.remember("open", str(conversation))
    chats.start()
    assert chats.entries()[-1].text == INTERRUPTED


def test_the_list_is_grouped_and_searched(qtbot: QtBot, chats: Chats) -> None:
    first, _ = say(chats.store)
    second = chats.store.create("Pudding")
    chats.pin(second, True)
    model = ConversationList(chats)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert [row.text for row in model.rows] == ["Pinned", "Pudding", "Today", "What is the capital of France?"]
    assert not model.flags(model.index(0)) & Qt.ItemFlag.ItemIsSelectable
    with qtbot.waitSignal(model.modelReset):
        model.search("seine")
    assert [row.conversation for row in model.rows] == [0, first]
    assert "[Seine]" in model.index(1).data(Role.SNIPPET)
    assert model.setData(model.index(1), "Rivers")
    assert chats.store.conversation(first).title == "Rivers"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("day", "name"),
    [(29, "Yesterday"), (30, "Today"), (26, "Last seven days"), (2, "November 2026")],
)
def test_days_have_names(day: int, name: str) -> None:
    assert day_name(date(2026, 11, day), date(2026, 11, 30)) == name
