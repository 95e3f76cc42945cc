"""What was said, in SQLite: conversations, their messages as a tree, what was attached, and what a search finds.

One `Store` belongs to one thread. Statements are short transactions into a write-ahead log without a flush to the disk;
the log is folded into the file by the engine's thread when a reply has ended (see `recorder.py`) and at the end.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.history.rounds import RoundTable
from app.history.schema import open_database
from app.language import tr

KEEP_DELETED_S = 30 * 86_400
WINDOW_WAITS_MS = 1000
"""For another that is writing: the window stands still meanwhile, so it gives up sooner than the engine's thread."""
Role = Literal["user", "assistant"]
AttachmentKind = Literal["picture", "text"]


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation as the list shows it."""

    id: int
    title: str
    created: float
    updated: float
    pinned: bool


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a message."""

    kind: AttachmentKind
    name: str
    data: bytes = field(repr=False)
    longest: int = 0
    """Pixels to which a picture's longest side is scaled down for the model; 0: it is read as it is."""


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message without its tokens."""

    id: int
    parent: int | None
    role: Role
    content: str
    created: float
    model: str
    state: str
    ending: str


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation in which something was found. `snippet` marks what matches with [ and ]."""

    conversation: ConversationRow
    snippet: str


class Store:
    """Reads and writes one history file."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Raises HistoryError if the file cannot be used."""
        self.path = path
        self._clock = clock
        self._db = open_database(path, WINDOW_WAITS_MS)
        self._db.execute("PRAGMA wal_autocheckpoint = 0")  # the window never waits for the disk
        self.rounds = RoundTable(self._db)

    def close(self) -> None:
        """Fold the log into the file and let go of it."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside happens whole or not at all; one inside another belongs to it."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # where SQLite has done it already, or cannot
                self._db.rollback()
            raise

    # Conversations

    def conversations(self) -> list[ConversationRow]:
        """All that are not deleted, the pinned ones first, each group newest first."""
        query = f"""
            SELECT {_LISTED} FROM conversations WHERE deleted IS NULL ORDER BY pinned DESC, updated DESC, id DESC
        """
        return [_conversation(row) for row in self._db.execute(query)]

    def conversation(self, conversation: int) -> ConversationRow | None:
        """One that is not deleted."""
        query = f"SELECT {_LISTED} FROM conversations WHERE id = ? AND deleted IS NULL"
        row = self._db.execute(query, (conversation,)).fetchone()
        return _conversation(row) if row else None

    def create(self, title: str = "", system: str = "") -> int:
        """A new conversation; returns its id."""
        now = self._clock()
        values = (title, now, now, system)
        query = "INSERT INTO conversations(title, created, updated, system) VALUES (?, ?, ?, ?)"
        return _id(self._db.execute(query, values))

    def rename(self, conversation: int, title: str) -> None:
        """Give a conversation the person's own title; an empty one lets the first message name it again."""
        self._set(conversation, title=title.strip() or self._first_words(conversation), named=int(bool(title.strip())))

    def pin(self, conversation: int, pinned: bool) -> None:
        self._set(conversation, pinned=int(pinned))

    def delete(self, conversation: int) -> None:
        """Put a conversation out of sight; `restore` brings it back for thirty days."""
        self._set(conversation, deleted=self._clock())

    def restore(self, conversation: int) -> None:
        self._set(conversation, deleted=None)

    def purge(self) -> None:
        """Remove for good what was deleted thirty days ago, and files that no message has any more."""
        with self.transaction():
            limit = self._clock() - KEEP_DELETED_S
            self._db.execute("DELETE FROM conversations WHERE deleted < ?", (limit,))
            self._db.execute("DELETE FROM messages WHERE deleted < ?", (limit,))
            self._db.execute("DELETE FROM blobs WHERE hash NOT IN (SELECT hash FROM attachments)")

    def system(self, conversation: int) -> str:
        """The conversation's system prompt."""
        return self._text_of(conversation, "system")

    def set_system(self, conversation: int, text: str) -> None:
        self._set(conversation, system=text)

    def unsent(self, conversation: int) -> str:
        """What was being written in this conversation."""
        return self._text_of(conversation, "unsent")

    def set_unsent(self, conversation: int, text: str) -> None:
        self._set(conversation, unsent=text)

    # Messages

    def messages(self, conversation: int) -> list[MessageRow]:
        """All messages of all branches that are not deleted, oldest first."""
        query = f"SELECT {_MESSAGE} FROM messages WHERE conversation = ? AND deleted IS NULL ORDER BY id"
        return [MessageRow(*row) for row in self._db.execute(query, (conversation,))]

    def message(self, message: int) -> MessageRow | None:
        """One message, also a deleted one."""
        query = f"SELECT {_MESSAGE} FROM messages WHERE id = ?"
        row = self._db.execute(query, (message,)).fetchone()
        return MessageRow(*row) if row else None

    def leaf(self, conversation: int) -> int | None:
        """The last message of the branch that was shown last."""
        row = self._db.execute("SELECT leaf FROM conversations WHERE id = ?", (conversation,)).fetchone()
        return row[0] if row else None

    def set_leaf(self, conversation: int, message: int | None) -> None:
        self._set(conversation, leaf=message)

    def add_user(
        self, conversation: int, parent: int | None, text: str, attachments: Sequence[Attachment] = ()
    ) -> MessageRow:
        """What the person said, as a new branch after `parent`."""
        with self.transaction():
            row = self._add(conversation, parent, "user", text)
            for place, attached in enumerate(attachments):
                digest = hashlib.blake2b(attached.data, digest_size=16).hexdigest()
                self._db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest, attached.data))
                values = (row.id, place, attached.kind, attached.name, digest, attached.longest)
                query = "INSERT INTO attachments(message, place, kind, name, hash, longest) VALUES (?, ?, ?, ?, ?, ?)"
                self._db.execute(query, values)
            self._name(conversation)
        return row

    def add_reply(self, conversation: int, parent: int, model: str) -> MessageRow:
        """A reply that begins now, as a new branch after `parent`."""
        with self.transaction():
            return self._add(conversation, parent, "assistant", "", model, "running")

    def resume(self, message: int) -> None:
        """A reply goes on."""
        self._db.execute("UPDATE messages SET state = 'running' WHERE id = ?", (message,))

    def delete_message(self, message: int) -> None:
        """Put a message, and with it everything after it, out of sight."""
        self._db.execute("UPDATE messages SET deleted = ? WHERE id = ?", (self._clock(), message))

    def restore_message(self, message: int) -> None:
        self._db.execute("UPDATE messages SET deleted = NULL WHERE id = ?", (message,))

    def attachments(self, message: int) -> tuple[Attachment, ...]:
        """The files that went with a message."""
        query = (
            "SELECT kind, name, data, longest FROM attachments JOIN blobs USING (hash) WHERE message = ? ORDER BY place"
        )
        return tuple(Attachment(*row) for row in self._db.execute(query, (message,)))

    def with_attachments(self, conversation: int) -> set[int]:
        """The messages of a conversation that have files."""
        query = "SELECT message FROM attachments JOIN messages ON messages.id = message WHERE conversation = ?"
        return {row[0] for row in self._db.execute(query, (conversation,))}

    def recover(self) -> int:
        """Make whole what a killed program was writing; returns how many replies there were."""
        running = [row[0] for row in self._db.execute("SELECT id FROM messages WHERE state = 'running'")]
        for message in running:
            reply = self.rounds.gather(message)
            with self.transaction():
                self.rounds.settle(message, "interrupted", reply)
        return len(running)

    # Searching and remembering

    def search(self, text: str, most: int = 100) -> list[Found]:
        """Conversations with all these words (their beginnings are enough) in the title or in one message."""
        words = re.findall(r"\w+", text)
        if not words:
            return []
        query = f"""
            SELECT {", ".join(f"c.{name}" for name in _LISTED.split(", "))}, snippet(search, 0, '[', ']', '…', 12)
            FROM search
            LEFT JOIN messages m ON search.rowid % 2 = 0 AND m.id = search.rowid / 2 AND m.deleted IS NULL
            JOIN conversations c ON c.id = CASE search.rowid % 2 WHEN 1 THEN search.rowid / 2 ELSE m.conversation END
            WHERE search MATCH ? AND c.deleted IS NULL
            ORDER BY search.rowid % 2 DESC, c.pinned DESC, c.updated DESC, search.rank
        """
        found: dict[int, Found] = {}
        for *row, snippet in self._db.execute(query, (" ".join(f'"{word}"*' for word in words),)):
            if row[0] not in found:
                found[row[0]] = Found(_conversation(row), snippet)
                if len(found) == most:
                    break
        return list(found.values())

    def remember(self, name: str, value: str) -> None:
        """Keep a small fact, as which conversation was open."""
        self._db.execute("INSERT OR REPLACE INTO remembered VALUES (?, ?)", (name, value))

    def remembered(self, name: str) -> str:
        row = self._db.execute("SELECT value FROM remembered WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    # Inside

    def _add(
        self, conversation: int, parent: int | None, role: Role, text: str, model: str = "", state: str = "done"
    ) -> MessageRow:
        now = self._clock()
        query = (
            "INSERT INTO messages(conversation, parent, role, content, created, model, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        made = _id(self._db.execute(query, (conversation, parent, role, text, now, model, state)))
        self._set(conversation, updated=now, leaf=made)
        return MessageRow(made, parent, role, text, now, model, state, "")

    def _set(self, conversation: int, **values: object) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE conversations SET {columns} WHERE id = ?", (*values.values(), conversation))

    def _text_of(self, conversation: int, column: str) -> str:
        row = self._db.execute(f"SELECT {column} FROM conversations WHERE id = ?", (conversation,)).fetchone()
        return row[0] if row else ""

    def _name(self, conversation: int) -> None:
        """Give a conversation that the person has not named the beginning of what was said first."""
        query = "UPDATE conversations SET title = ? WHERE id = ? AND named = 0 AND title = ''"
        self._db.execute(query, (self._first_words(conversation), conversation))

    def _first_words(self, conversation: int) -> str:
        query = "SELECT content FROM messages WHERE conversation = ? AND role = 'user' AND content != '' ORDER BY id"
        row = self._db.execute(query, (conversation,)).fetchone()
        words = " ".join(row[0].split()) if row else ""
        return words if len(words) <= MOST_TITLE else words[:MOST_TITLE].rsplit(" ", 1)[0] + "…"


MOST_TITLE = 60
_MESSAGE = "id, parent, role, content, created, model, state, ending"  # not translated: SQL
_LISTED = "id, title, created, updated, pinned"  # not translated: SQL


def _conversation(row: Sequence[object]) -> ConversationRow:
    made, title, created, updated, pinned = row
    assert isinstance(made, int)
    assert isinstance(created, float)
    assert isinstance(updated, float)
    return ConversationRow(made, str(title) or tr("New chat"), created, updated, bool(pinned))


def _id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid
