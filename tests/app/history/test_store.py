"""Conversations as they are kept: named, pinned, deleted, found, and brought up to date."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from app.history import schema
from app.history.schema import MIGRATIONS, HistoryError
from app.history.store import KEEP_DELETED_S, Attachment, Store
from tests.app.history.conftest import Clock, say


def titles(store: Store) -> list[str]:
    return [row.title for row in store.conversations()]


def test_a_conversation_takes_its_first_words_as_title_until_it_is_given_one(store: Store) -> None:
    one = store.create()
    assert titles(store) == ["New chat"]
    store.add_user(one, None, "What   is\nthe capital of a country whose name I have forgotten, and why is it so?")
    assert titles(store) == ["What is the capital of a country whose name I have…"]
    store.rename(one, " Capitals ")
    store.add_user(one, store.leaf(one), "And of Spain?")
    assert titles(store) == ["Capitals"]
    store.rename(one, "")
    assert titles(store) == ["What is the capital of a country whose name I have…"]


def test_the_pinned_come_first_and_then_the_newest(store: Store) -> None:
    ids = [store.create(name) for name in ("a", "b", "c")]
    store.pin(ids[0], True)
    assert titles(store) == ["a", "c", "b"]
    store.add_user(ids[1], None, "again")
    assert titles(store) == ["a", "b", "c"]


def test_deleting_can_be_undone_until_it_is_purged(store: Store, clock: Clock) -> None:
    conversation, reply = say(store)
    store.delete(conversation)
    assert titles(store) == []
    assert store.search("capital") == []
    store.purge()
    store.restore(conversation)
    assert [m.id for m in store.messages(conversation)][-1] == reply.id
    store.delete(conversation)
    clock.now += KEEP_DELETED_S + 10
    store.purge()
    store.restore(conversation)
    assert titles(store) == []
    assert store.rounds.count(reply.id) == 0


def test_search_finds_titles_and_text_by_beginnings_whatever_the_accents(store: Store) -> None:
    by_text, _ = say(store)
    by_title = store.create("Crème brûlée")
    assert [found.conversation.id for found in store.search("seine RUN")] == [by_text]
    assert "[Seine] [runs]" in store.search("seine RUN")[0].snippet
    assert [found.conversation.id for found in store.search("creme")] == [by_title]
    assert store.search("nowhere") == []
    for odd in ("", "  ", '"', "a AND", "(", "NEAR(", "*", "-x"):
        store.search(odd)
    store.rename(by_title, "Pudding")
    assert store.search("creme") == []


def test_what_was_being_written_and_the_system_prompt_belong_to_the_conversation(store: Store) -> None:
    one, two = store.create(), store.create(system="Be brief.")
    store.set_unsent(one, "half a thou")
    store.set_system(one, "Be long.")
    assert (store.unsent(one), store.unsent(two)) == ("half a thou", "")
    assert (store.system(one), store.system(two)) == ("Be long.", "Be brief.")
    store.remember("open", "2")
    assert (store.remembered("open"), store.remembered("shut")) == ("2", "")


def test_files_go_with_their_message_and_the_same_file_is_kept_once(store: Store, tmp_path: Path) -> None:
    conversation = store.create()
    files = (Attachment("picture", "cat.png", b"\x89PNG", 512), Attachment("text", "notes.txt", "é".encode()))
    first = store.add_user(conversation, None, "look", files)
    store.add_user(conversation, first.id, "again", files[:1])
    assert store.attachments(first.id) == files
    with sqlite3.connect(store.path) as db:
        assert db.execute("SELECT count(*) FROM blobs").fetchone() == (2,)
    db.close()


def test_a_file_of_the_first_version_is_brought_up_to_date_and_a_copy_of_it_kept(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite3"
    db = sqlite3.connect(path)
    db.executescript(f"{MIGRATIONS[0]} PRAGMA user_version = 1;")
    db.executescript(
        "INSERT INTO conversations(created, updated) VALUES (1.0, 1.0);"
        "INSERT INTO messages(conversation, role, content, created) VALUES (1, 'user', 'look', 1.0);"
        "INSERT INTO blobs VALUES ('h', x'89');"
        "INSERT INTO attachments VALUES (1, 0, 'picture', 'cat.png', 'h');"
    )
    db.close()
    store = Store(path)
    assert store.attachments(1) == (Attachment("picture", "cat.png", b"\x89", 0),)
    assert [row.content for row in store.messages(1)] == ["look"]
    assert path.with_suffix(".v1.sqlite3").exists()
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite3"
    Store(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(HistoryError, match="newer Draftscope"):
        Store(path)


def test_what_is_no_database_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite3"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(HistoryError, match=r"h\.sqlite3 cannot be used now: it is no database"):
        Store(path)


def test_a_migration_that_another_start_did_meanwhile_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite3"
    first, second = schema.connect(path), schema.connect(path)

    class Late(schema.Connection):
        """Sees the version that the file had before the other start."""

        asked = False

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if "user_version" in sql and not self.asked:
                self.asked = True
                return super().execute("SELECT 0")
            return super().execute(sql, parameters)

    schema.migrate(first, path)
    late = sqlite3.connect(path, isolation_level=None, factory=Late)
    schema.migrate(late, path)
    schema.migrate(second, path)
    assert late.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    for connection in (first, second, late):
        connection.close()
