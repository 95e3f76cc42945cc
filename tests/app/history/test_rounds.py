"""Replies out of the history look like the ones that went in, and stay in the database until they are needed."""

from __future__ import annotations

import sqlite3

import pytest

from app.chat.cells import Reply
from app.history.columns import PAGE, StoredReply, StoredRounds
from app.history.recorder import Recorder
from app.history.rounds import RoundTable
from app.history.store import Store
from engine import Failed, Finished, Round
from tests.app.history.conftest import record, say
from tests.app.scripted import WORDS, finished, rounds_of

LONG = " ".join(str(i) for i in range(2000))


def live(text: str) -> Reply:
    reply = Reply()
    for one in rounds_of(text.split(" ")):
        reply.add_round(one)
    return reply


def test_a_stored_reply_has_every_cell_of_the_one_that_was_written(store: Store) -> None:
    _, message = say(store, LONG)
    stored, before = store.rounds.reply(message.id), live(LONG)
    assert isinstance(stored, StoredReply)
    assert not stored.active
    assert stored.stats is not None
    assert message.content == stored.text == before.text == LONG
    assert list(stored.cells()) == list(before.cells())
    assert list(stored.rounds) == before.rounds
    assert stored.rounds[-1] == before.rounds[-1]
    assert stored.rounds[3:7] == before.rounds[3:7]


def test_rounds_are_fetched_in_pages_and_only_when_asked_for(store: Store) -> None:
    asked: list[tuple[int, int]] = []

    def fetch(first: int, last: int) -> list[Round]:
        asked.append((first, last))
        return [Round(i, 0, "answer", (), (), 0.0, 0.0) for i in range(first, last)]

    rounds = StoredRounds(PAGE + 10, fetch)
    assert len(rounds) == PAGE + 10
    assert asked == []
    assert [rounds[i].index for i in (0, 1, PAGE, -1)] == [0, 1, PAGE, PAGE + 9]
    assert asked == [(0, PAGE), (PAGE, PAGE + 10)]
    with pytest.raises(IndexError):
        rounds[PAGE + 10]


def test_a_reply_can_be_continued_after_it_was_stored(store: Store) -> None:
    _, message = say(store, "one two three four")
    stored = store.rounds.reply(message.id)
    for one in rounds_of(["", "five", "six"]):
        stored.add_round(one)
    assert stored.text == "one two three four five six"
    record(store, message.id, " five six")
    again = store.rounds.reply(message.id)
    assert list(again.cells()) == list(stored.cells())
    assert len(store.rounds.tokens(message.id)) == 7


def test_columns_that_do_not_fit_are_made_again_from_the_rounds(store: Store) -> None:
    _, message = say(store)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE cells SET columns = x'0500000001'")
        db.execute("UPDATE rounds SET record = '{' WHERE number = 1")
    db.close()
    reply = store.rounds.reply(message.id)
    assert not isinstance(reply, StoredReply)
    assert reply.text.startswith("The\ufffd")


def test_what_a_killed_program_was_writing_is_whole_at_the_next_start(store: Store) -> None:
    conversation = store.create()
    prompt = store.add_user(conversation, None, "hello")
    reply = store.add_reply(conversation, prompt.id, "demo")
    recorder = Recorder(store.path, reply.id)
    for one in list(rounds_of(WORDS))[:3]:
        recorder(one)
    recorder.close()
    assert store.recover() == 1
    row = store.messages(conversation)[-1]
    assert (row.content, row.state) == ("The capital of France is Paris, and the", "interrupted")
    assert store.rounds.ending(reply.id) is None
    assert store.recover() == 0


def test_how_a_reply_ended_is_kept(store: Store) -> None:
    _, message = say(store)
    last = store.rounds.ending(message.id)
    assert isinstance(last, Finished)
    assert last.stats == finished(list(rounds_of(WORDS))).stats
    record(store, message.id, " more", Failed("The disk is gone.", "ReadError"))
    assert isinstance(store.rounds.ending(message.id), Failed)


def test_a_disk_that_cannot_be_written_to_is_told_and_ends_nothing(store: Store) -> None:
    recorder = Recorder(store.path.parent / "missing" / "h.sqlite3", 1)
    rounds = list(rounds_of(WORDS))
    for one in (*rounds, finished(rounds)):
        recorder(one)
    assert recorder.problem.startswith("The reply is not kept: copy what you need of it.")


def test_what_could_not_be_written_for_a_while_is_written_later(store: Store) -> None:
    """Another program holds the file while a reply begins."""
    conversation = store.create()
    prompt = store.add_user(conversation, None, "Hello?")
    reply = store.add_reply(conversation, prompt.id, "demo")
    now = [0.0]
    recorder, rounds = Recorder(store.path, reply.id, lambda: now[0]), list(rounds_of(WORDS))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    recorder(rounds[0])  # waits for some seconds, and gives up
    recorder(rounds[1])  # does not wait again so soon
    other.execute("ROLLBACK")
    other.close()
    assert store.rounds.count(reply.id) == 0
    now[0] += 10
    for one in rounds[2:]:
        recorder(one)
    assert store.rounds.count(reply.id) == len(rounds)
    recorder(finished(rounds))
    assert recorder.problem == ""
    assert store.message(reply.id).content == " ".join(WORDS)  # type: ignore[union-attr]


def test_rounds_that_are_held_stay_the_same_objects_when_pages_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.history.columns.PAGE", 2)
    monkeypatch.setattr("app.history.columns.PAGES", 1)
    _, message = say(store, LONG)
    reply = store.rounds.reply(message.id)
    assert isinstance(reply, StoredReply)
    held = reply.hold(10, 20)
    assert reply.rounds[15] is held[5]
    assert reply.rounds[30] is not None  # another page takes the place of the one before
    assert reply.rounds[15] is held[5]
    assert reply.hold(8, 12)[2:] == held[:2]
    assert reply.hold(10, 20)[3] is held[3]
    assert reply.number_of(held[7]) == 17
    assert reply.number_of(reply.rounds[200]) == 200
    assert reply.number_of(next(iter(reply.rounds))) == -1  # which was read for somebody else
    reply.add_round(held[0])
    assert reply.rounds[15] is held[5]
    assert reply.number_of(held[7]) == 17


def test_nobody_waits_while_a_long_reply_is_gathered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window may write, as it does at every key, until the very moment when the reply itself is written."""
    conversation = store.create()
    prompt = store.add_user(conversation, None, "Hello?")
    reply = store.add_reply(conversation, prompt.id, "demo")
    recorder, rounds = Recorder(store.path, reply.id), list(rounds_of(WORDS))
    gather = RoundTable.gather

    def gathered(table: RoundTable, message: int) -> Reply:
        store.set_unsent(conversation, "typed meanwhile")
        return gather(table, message)

    monkeypatch.setattr(RoundTable, "gather", gathered)
    for one in (*rounds, finished(rounds)):
        recorder(one)
    assert recorder.problem == ""
    assert store.unsent(conversation) == "typed meanwhile"
