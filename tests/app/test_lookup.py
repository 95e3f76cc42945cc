"""Lookup in other conversations: off unless wanted, bounded, encoded once, and without any say in what is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import app.history.others
import engine
from app.chat.controller import ChatController
from app.history.chats import Chats
from app.history.others import OtherTexts
from app.history.store import Store
from app.lookup import Lookup
from app.main_window import MainWindow
from app.settings import ReplyChoices
from app.worker import EngineHandle
from engine import DraftOptions, Finished, GenerateOptions
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import WORDS, Script


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        window.send(text)


def test_other_conversations_are_looked_into_only_when_the_person_wants_it(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    assert not loaded.panel.elsewhere.isEnabled()  # the MTP layer looks nothing up
    ask(qtbot, loaded, "one two")
    loaded.new_chat()
    loaded.panel.drafter.setCurrentIndex(loaded.panel.drafter.findData("mtp+ngram"))
    ask(qtbot, loaded, "three")
    assert script.searched == []
    loaded.panel.elsewhere.click()
    ask(qtbot, loaded, "four")
    assert script.encoded == ["one two", " ".join(WORDS)]
    assert script.searched == [[[3, 3], [len(word) for word in WORDS]]]
    ask(qtbot, loaded, "five")
    assert len(script.searched) == 1
    loaded.panel.elsewhere.click()
    ask(qtbot, loaded, "six")
    assert script.searched[1:] == [[]]
    assert loaded.memory.settings.reply.search_chats is False


def test_the_choice_counts_only_with_a_drafter_that_looks_up() -> None:
    both = DraftOptions("mtp+ngram")
    assert ReplyChoices(draft=both, search_chats=True).looks_elsewhere
    assert not ReplyChoices(draft=DraftOptions("mtp"), search_chats=True).looks_elsewhere
    assert not ReplyChoices(draft=DraftOptions("ngram", 0), search_chats=True).looks_elsewhere
    assert not ReplyChoices(draft=both).looks_elsewhere


def test_the_newest_texts_come_last_and_no_more_than_are_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "h.sqlite3")
    old, gone, newer, own = (store.create() for _ in range(4))
    for conversation, text in ((old, "oldest"), (old, "old"), (gone, "gone"), (newer, "newer"), (own, "own")):
        store.add_user(conversation, store.leaf(conversation), text)
    store.delete(gone)
    store.add_reply(newer, store.leaf(newer) or 0, "m")  # still being written
    assert OtherTexts(store.path, own)() == ["oldest", "old", "newer"]
    assert OtherTexts(store.path, None)() == ["oldest", "old", "newer", "own"]
    monkeypatch.setattr(app.history.others, "MOST_CHARACTERS", 8)
    assert OtherTexts(store.path, own)() == ["old", "newer"]
    monkeypatch.setattr(app.history.others, "MOST_CHARACTERS", 4)
    assert OtherTexts(store.path, own)() == ["newe"], "a huge one does not hide everything"
    assert OtherTexts(tmp_path / "missing" / "h.sqlite3", own)() == []
    store.close()


class Recording:
    """Model and session in one, which write down what they are asked for."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.given: list[list[list[int]]] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return [len(text)]

    def search_also(self, texts: Sequence[Sequence[int]]) -> None:
        self.given.append([list(text) for text in texts])


def test_only_what_is_new_is_encoded_and_only_a_change_is_handed_over() -> None:
    lookup, model, session = Lookup(), Recording(), Recording()
    lookup.prepare(model, session, [])
    assert session.given == []
    lookup.prepare(model, session, ["a", "bb"])
    lookup.prepare(model, session, ["a", "bb"])
    lookup.prepare(model, session, ["bb", "ccc"])
    assert model.encoded == ["a", "bb", "ccc"]
    assert session.given == [[[1], [2]], [[2], [3]]]
    another = Recording()
    lookup.prepare(model, another, ["bb", "ccc"])
    assert another.given == [[[2], [3]]]
    assert model.encoded == ["a", "bb", "ccc"]
    lookup.prepare(model, another, [])
    assert another.given[-1] == []


Replies = Callable[[bool], tuple[Finished, int]]


@pytest.fixture
def replies(qtbot: QtBot, tmp_path: Path) -> Iterator[Replies]:
    """What the demo, in a real engine thread, says in a new conversation, and how many of its tokens lookup drafted."""
    handle, store = EngineHandle(engine.load_model), Store(tmp_path / "history.sqlite3")
    options = GenerateOptions(draft=DraftOptions("ngram", 4), max_new_tokens=60)
    chat = ChatController(handle, lambda: options, Chats(store))
    with qtbot.waitSignal(chat.loaded, timeout=120_000):
        chat.load(engine.demo_path(), None)

    def reply(elsewhere: bool) -> tuple[Finished, int]:
        chat.looks_elsewhere = lambda: elsewhere
        chat.new_chat()
        with qtbot.waitSignal(chat.reply_ended, timeout=60_000) as ended:
            chat.send("What is the capital of France?")
        assert isinstance(ended.args[0], Finished), ended.args[0]
        return ended.args[0], ended.args[0].stats.accepted

    yield reply
    handle.close()
    assert handle.wait(PATIENCE_MS)
    chat.leave()


def test_the_demo_says_the_same_and_says_it_in_fewer_passes(replies: Replies) -> None:
    plain, without = replies(False)
    helped, with_others = replies(True)  # where the first reply is another conversation's
    assert helped.tokens == plain.tokens
    assert with_others > without
    assert helped.stats.target_passes < plain.stats.target_passes
    assert replies(False)[0].tokens == plain.tokens
