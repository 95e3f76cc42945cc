"""A full disk, a file that another program holds, one that may not be written to: a sentence, and nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.crash import CrashReporter
from app.drive import Drive, Errand
from app.history.schema import FILE_NAME, HistoryError
from app.history.store import Store
from app.main_window import MainWindow
from app.program import Request, first_steps
from tests.app.conftest import DEMO, PATIENCE_MS, MakeWindow


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another program is writing into the history, and does not end."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def no_room() -> Iterator[None]:
    """The system refuses to let files grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.composer.set_text(text)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)


def answered(qtbot: QtBot, window: MainWindow, text: str) -> None:
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        ask(qtbot, window, text)


def said(window: MainWindow) -> list[str]:
    return [row.content for row in window.chats.tree.path]


def test_what_cannot_be_kept_is_not_sent_and_comes_back(qtbot: QtBot, loaded: MainWindow, tmp_path: Path) -> None:
    """Also in a new conversation, of which nothing is left behind."""
    path = tmp_path / FILE_NAME
    with held(path):
        ask(qtbot, loaded, "Do not lose me")
        assert loaded.composer.text == "Do not lose me"
        assert loaded.message_bar.text.startswith(f"The history {path} cannot be used now: another program holds it")
        assert loaded.message_bar.level == "error"
        assert loaded.chats.current is None
        assert loaded.chats.rows() == []
    qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(said(loaded)) == 2 and not loaded.controller.replying, timeout=PATIENCE_MS)
    assert said(loaded)[0] == "Do not lose me"
    assert loaded.composer.text == ""


def test_a_full_disk_is_told_and_the_conversation_stays_whole(
    qtbot: QtBot, loaded: MainWindow, make_window: MakeWindow, tmp_path: Path
) -> None:
    answered(qtbot, loaded, "one")
    before = said(loaded)
    with no_room():
        ask(qtbot, loaded, "two " * 5000)
        assert "disk" in loaded.message_bar.text
        assert loaded.composer.text.startswith("two two")
        loaded.actions_by_name["regenerate"].trigger()
        assert said(loaded) == before, "the reply is shown again"
        loaded.desk.delete(loaded.chats.rows()[0].id)
        assert [row.title for row in loaded.chats.rows()] == ["one"]
        assert loaded.message_bar.remedy.isHidden(), "there is nothing to undo"
    answered(qtbot, loaded, "three")
    assert said(loaded)[:3] == [*before, "three"]
    again = make_window()
    assert said(again) == said(loaded)


def test_an_edit_that_cannot_be_kept_goes_on_being_one(qtbot: QtBot, loaded: MainWindow, tmp_path: Path) -> None:
    answered(qtbot, loaded, "one")
    loaded.actions_by_name["message_edit"].trigger()
    message = loaded.composer.editing
    assert message
    with held(tmp_path / FILE_NAME):
        ask(qtbot, loaded, "one, but better")
        assert (loaded.composer.editing, loaded.composer.text) == (message, "one, but better")
        assert said(loaded)[0] == "one"
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_Return)
    assert said(loaded)[0] == "one, but better"


def test_the_program_starts_and_ends_while_another_holds_the_file(
    qtbot: QtBot, make_window: MakeWindow, tmp_path: Path
) -> None:
    first = make_window()
    with held(tmp_path / FILE_NAME):
        window = make_window()
        assert "another program holds it" in window.message_bar.text
        window.composer.set_text("typed meanwhile")
        window.message_bar.dismiss()
        window.composer.set_text("typed meanwhile, and on")
        assert window.message_bar.text == "", "it is told once, not at every key"
        with qtbot.waitSignal(window.closed, timeout=PATIENCE_MS):
            window.close()
    first.composer.set_text("later")
    assert first.chats.unsent == "later"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the system's administrator")
def test_a_folder_that_may_not_be_written_to_is_told(qtbot: QtBot, make_window: MakeWindow, tmp_path: Path) -> None:
    store = Store(tmp_path / FILE_NAME)
    store.create("kept")
    store.close()
    (tmp_path / FILE_NAME).chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        window = make_window()
        said_now = window.message_bar.text
        assert str(tmp_path / FILE_NAME) in said_now
        assert "What is said now is kept in" in said_now
        window.composer.set_text("typed")
        assert window.chats.unsent == "typed"
    finally:
        tmp_path.chmod(0o700)


def test_a_database_that_refuses_writing_is_told(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.chats.store._db.execute("PRAGMA query_only = ON")
    ask(qtbot, loaded, "Keep me")
    assert "it may not be written to; make the file and its folder writable" in loaded.message_bar.text
    assert loaded.composer.text == "Keep me"
    loaded.chats.store._db.execute("PRAGMA query_only = OFF")


def test_a_transaction_that_failed_does_not_stand_in_the_way_of_the_next(tmp_path: Path) -> None:
    store = Store(tmp_path / FILE_NAME)
    with no_room(), pytest.raises(HistoryError, match="disk"), store.transaction():
        store.create("x" * 100_000)
    assert store.conversations() == []
    store.create("y")
    assert [row.title for row in store.conversations()] == ["y"]
    store.close()


def test_what_nobody_foresaw_is_a_sentence_too(qtbot: QtBot, tmp_path: Path) -> None:
    import sys

    reporter = CrashReporter()
    try:
        with qtbot.waitSignal(reporter.said) as told:
            error = HistoryError("The history x cannot be used now: its disk is full.")
            sys.excepthook(HistoryError, error, None)
        assert told.args == [str(error)]
        assert reporter.dialogs == []
    finally:
        reporter.release()


def test_what_is_wrong_with_the_history_stays_readable_while_the_first_model_loads(
    qtbot: QtBot, make_window: MakeWindow, tmp_path: Path
) -> None:
    """As the program does it at its start."""
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    window = make_window()
    request = Request(tmp_path)
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        for step in first_steps(request, window, Drive(window, Errand()), lambda: DEMO)[1:]:
            step()
    assert "cannot be used now: it is no database" in window.message_bar.text
    assert "What is said now is kept in" in window.message_bar.text
