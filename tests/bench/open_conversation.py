"""How long the window takes to open a long conversation from the history: `python -m tests.bench.open_conversation`.

The history is a real one: conversations of `--tokens` tokens, one of a single reply and one of many, with every round
in the database. Told are the clock and the CPU time of the window's thread from the click until the end of the
conversation is painted, as tokens and as rendered text.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from app.history.store import Store
    from app.main_window import MainWindow


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Measure opening long conversations.")
    parser.add_argument("--tokens", type=int, default=300_000, help="length of each conversation (default: 300000)")
    parser.add_argument("--replies", type=int, default=60, help="replies of the second one (default: 60)")
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        run(arguments, Path(folder))


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Make the history, open its conversations in a window."""
    from PySide6.QtWidgets import QApplication

    from app.history.opening import open_store
    from app.main_window import MainWindow
    from app.settings import SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle
    from tests.app.scripted import Script

    store, problem = open_store(folder)
    assert not problem
    made = {name: fill(store, arguments.tokens, replies) for name, replies in (("one", 1), ("many", arguments.replies))}
    made["short"] = fill(store, 100, 1)
    store.close()
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    window = MainWindow(EngineHandle(Script().load_model), SettingsFile(folder), Stylist(app, "light"), lambda: folder)
    window.show()
    app.processEvents()
    print(f"{arguments.tokens} tokens; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for reading in (False, True):
        for name, words in (("one", "in one reply"), ("many", f"in {arguments.replies} replies")):
            window.desk._open(made["short"])
            if window.memory.settings.reading_view != reading:
                window.switch_view()
            app.processEvents()
            told = measured(app, window, lambda chosen=made[name]: window.desk._open(chosen))  # type: ignore[misc]
            print(f"{'rendered' if reading else 'as tokens':<10} {words:<16} {told}")
    window.engine.close()
    window.engine.wait(10_000)


def fill(store: Store, tokens: int, replies: int) -> int:
    """A conversation of so many tokens in so many replies, as `RoundTable.settle` leaves it."""
    from app.chat.cells import Reply
    from app.history.codec import round_to_text
    from app.history.columns import columns_of
    from tests.app.chat import scripted_records

    rounds = scripted_records.long_reply(tokens // replies)
    texts = {id(record): round_to_text(record) for record in rounds[:400]}  # they come again and again
    shown = Reply()
    for record in rounds:
        shown.add_round(record)
    conversation = store.create()
    for number in range(replies):
        prompt = store.add_user(conversation, store.leaf(conversation), f"Tell me more ({number}).")
        reply = store.add_reply(conversation, prompt.id, "demo")
        with sqlite3.connect(store.path) as database:
            rows = ((reply.id, at, texts[id(record)]) for at, record in enumerate(rounds))
            database.executemany("INSERT INTO rounds VALUES (?, ?, ?)", rows)
            database.execute("INSERT INTO cells VALUES (?, ?, ?, ?)", (reply.id, len(rounds), *columns_of(shown)))
            said = (shown.text, reply.id)
            database.execute("UPDATE messages SET content = ?, state = 'done' WHERE id = ?", said)
    return conversation


def measured(app: QApplication, window: MainWindow, act: Callable[[], object]) -> str:
    """What `act` took until the window has come to rest."""
    begun, used = time.perf_counter(), time.thread_time()
    act()
    app.processEvents()
    window.grab()
    shown = f"{1e3 * (time.perf_counter() - begun):5.0f} ms, {1e3 * (time.thread_time() - used):5.0f} ms CPU to show"
    while window.view.document.waiting:
        app.processEvents()
    return f"{shown}; {1e3 * (time.thread_time() - used):5.0f} ms CPU until every line is laid out"


if __name__ == "__main__":
    main()
