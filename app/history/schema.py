"""The history's database: its tables, and the steps that bring an older file up to date (`user_version` counts)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from app.language import mark, tr

FILE_NAME = "history.sqlite3"
BUSY_MS = 5000

# One entry a version; entries are never changed, only added.
MIGRATIONS = (
    """
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL DEFAULT '',
        named INTEGER NOT NULL DEFAULT 0,        -- 1: the person chose the title
        created REAL NOT NULL,
        updated REAL NOT NULL,
        pinned INTEGER NOT NULL DEFAULT 0,
        deleted REAL,                            -- when; NULL: not deleted
        leaf INTEGER,                            -- last message of the branch that is shown
        system TEXT NOT NULL DEFAULT '',
        unsent TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        parent INTEGER REFERENCES messages(id) ON DELETE CASCADE,
        role TEXT NOT NULL,
        content TEXT NOT NULL DEFAULT '',
        created REAL NOT NULL,
        model TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT 'done',      -- done, running, interrupted
        ending TEXT NOT NULL DEFAULT '',         -- how a reply ended, as JSON
        deleted REAL
    );
    CREATE INDEX messages_of ON messages(conversation);
    CREATE INDEX messages_after ON messages(parent);
    CREATE TABLE rounds (
        message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
        number INTEGER NOT NULL,                 -- 0, 1, 2 … also across a continuation
        record TEXT NOT NULL,
        PRIMARY KEY (message, number)
    ) WITHOUT ROWID;
    CREATE TABLE cells (                         -- a finished reply's tokens in columns, to be shown at once
        message INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
        rounds INTEGER NOT NULL,
        texts TEXT NOT NULL,
        columns BLOB NOT NULL
    );
    CREATE TABLE blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE attachments (
        message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        kind TEXT NOT NULL,                      -- picture, text
        name TEXT NOT NULL,
        hash TEXT NOT NULL REFERENCES blobs(hash),
        PRIMARY KEY (message, place)
    );
    CREATE TABLE remembered (name TEXT PRIMARY KEY, value TEXT NOT NULL);

    -- Titles have odd row ids, messages even ones.
    CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'unicode61 remove_diacritics 2');
    CREATE TRIGGER message_said AFTER INSERT ON messages BEGIN
        INSERT INTO search(rowid, text) VALUES (new.id * 2, new.content);
    END;
    CREATE TRIGGER message_grew AFTER UPDATE OF content ON messages BEGIN
        UPDATE search SET text = new.content WHERE rowid = new.id * 2;
    END;
    CREATE TRIGGER message_gone AFTER DELETE ON messages BEGIN
        DELETE FROM search WHERE rowid = old.id * 2;
    END;
    CREATE TRIGGER title_given AFTER INSERT ON conversations BEGIN
        INSERT INTO search(rowid, text) VALUES (new.id * 2 + 1, new.title);
    END;
    CREATE TRIGGER title_changed AFTER UPDATE OF title ON conversations BEGIN
        UPDATE search SET text = new.title WHERE rowid = new.id * 2 + 1;
    END;
    CREATE TRIGGER conversation_gone AFTER DELETE ON conversations BEGIN
        DELETE FROM search WHERE rowid = old.id * 2 + 1;
    END;
    """,
    """
    -- Pixels to which a picture's longest side is scaled down for the model; 0: it is read as it is.
    ALTER TABLE attachments ADD COLUMN longest INTEGER NOT NULL DEFAULT 0;
    """,  # not translated: SQL
)


class HistoryError(Exception):
    """The history cannot be opened, read or written; the sentence says why and what to do."""


class Connection(sqlite3.Connection):
    """A connection whose failures are sentences."""

    path = Path()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As SQLite's own; raises HistoryError."""
        try:
            return super().execute(sql, parameters)
        except sqlite3.Error as error:
            raise HistoryError(sentence(self.path, error)) from error


_REMEDIES = {
    sqlite3.SQLITE_FULL: mark("its disk is full; make room and do it again"),
    sqlite3.SQLITE_BUSY: mark("another program holds it; end that program, or wait, and do it again"),
    sqlite3.SQLITE_LOCKED: mark("another program holds it; end that program, or wait, and do it again"),
    sqlite3.SQLITE_READONLY: mark("it may not be written to; make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: mark("it cannot be opened; make its folder readable and writable"),
    sqlite3.SQLITE_PERM: mark("it may not be written to; make the file and its folder writable"),
    sqlite3.SQLITE_IOERR: mark("its disk failed or has no room ({reason}); look at the disk and do it again"),
    sqlite3.SQLITE_CORRUPT: mark("it is damaged; close the program and put a copy of the file in its place"),
    sqlite3.SQLITE_NOTADB: mark("it is no database; close the program and put a copy of the file in its place"),
}
_OTHERWISE = mark("{reason}; do it again")


def sentence(path: Path, error: sqlite3.Error) -> str:
    """What failed, where, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    remedy = _REMEDIES.get(code, _OTHERWISE)
    return tr("The history {path} cannot be used now: {remedy}.", path=path, remedy=tr(remedy, reason=error))


def connect(path: Path, busy_ms: int = BUSY_MS) -> Connection:
    """Open the database, for one thread. Each statement is a transaction of its own unless `with` groups some.

    `busy_ms`: how long to wait for another thread or program that is writing. Raises HistoryError.
    """
    try:
        connection = sqlite3.connect(path, timeout=busy_ms / 1000, isolation_level=None, factory=Connection)
    except sqlite3.Error as error:
        raise HistoryError(sentence(path, error)) from error
    connection.path = path
    connection.execute("PRAGMA foreign_keys = ON")
    # With a write-ahead log, NORMAL survives a killed program whole; a power cut can take the last moment, never more.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def open_database(path: Path, busy_ms: int = BUSY_MS) -> Connection:
    """Open the database, make it if there is none, and bring it up to date.

    Raises:
        HistoryError: it was written by a newer version, is no database, or cannot be reached.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path, busy_ms)
        try:
            sqlite3.Connection.execute(connection, "PRAGMA journal_mode = WAL")
            migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise HistoryError(
            tr(
                "The history {path} cannot be opened ({reason}); make its folder writable, "
                "and start the program again.",
                path=path,
                reason=reason,
            )
        ) from error
    return connection


def migrate(connection: Connection, path: Path) -> None:
    """Apply the migrations that the file lacks, each whole or not at all; a copy is kept of a file that had any."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise HistoryError(
            tr("The history {path} was written by a newer Draftscope; update the program to open it.", path=path)
        )
    if 0 < version < len(MIGRATIONS):
        copy = path.with_suffix(f".v{version}.sqlite3")
        if not copy.exists():
            connection.execute("VACUUM INTO ?", (str(copy),))
    for number in range(version, len(MIGRATIONS)):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
            )
        except sqlite3.Error:
            connection.rollback()
            if connection.execute("PRAGMA user_version").fetchone()[0] <= number:
                raise  # else another start has just done it
