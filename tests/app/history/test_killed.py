"""A program that is killed loses at most the round that was being written, wherever it was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.history.store import Store

ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from pathlib import Path
from app.history.recorder import Recorder
from app.history.store import Store
from tests.app.scripted import finished, rounds_of

store = Store(Path(sys.argv[1]))
conversation = store.create()
while True:
    prompt = store.add_user(conversation, store.leaf(conversation), "count")
    reply = store.add_reply(conversation, prompt.id, "demo")
    recorder, rounds = Recorder(store.path, reply.id), list(rounds_of([str(i) for i in range(300)]))
    for record in rounds:
        recorder(record)
        print(reply.id, record.index, flush=True)
    recorder(finished(rounds))
    print(reply.id, "end", flush=True)
"""


def kill_and_look(folder: Path, seconds: float) -> None:
    """Kill a program that talks without a pause, and hold what it said it had written against what is there."""
    path = folder / "history.sqlite3"
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None
    first = child.stdout.readline()  # the first round is written
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    told = [line.split() for line in (first + child.stdout.read()).splitlines(keepends=True) if line.endswith("\n")]
    child.stdout.close()
    child.wait()
    store = Store(path)
    store.recover()
    (conversation,) = store.conversations()
    rows = {row.id: row for row in store.messages(conversation.id)}
    for reply in {int(number) for number, _ in told}:
        written = [what for number, what in told if int(number) == reply]
        rounds = [int(what) for what in written if what != "end"]
        assert max(rounds) + 1 <= store.rounds.count(reply) <= max(rounds) + 2
        assert rows[reply].content == store.rounds.reply(reply).text
        assert rows[reply].content.split(" ") == [str(i) for i in range(len(rows[reply].content.split(" ")))]
        assert rows[reply].state in (("done",) if "end" in written else ("done", "interrupted"))
    assert all(row.state != "running" for row in rows.values())
    store.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill without a word")
@pytest.mark.parametrize("number", range(10))
def test_nothing_is_lost_when_killed(tmp_path: Path, number: int) -> None:
    kill_and_look(tmp_path, random.Random(number).uniform(0.0, 0.4))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill without a word")
@pytest.mark.parametrize("number", range(10, 60))
def test_nothing_is_lost_when_killed_often(tmp_path: Path, number: int) -> None:
    kill_and_look(tmp_path, random.Random(number).uniform(0.0, 1.0))
