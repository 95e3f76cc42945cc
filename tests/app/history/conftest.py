"""A history in a temporary folder, and replies to fill it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.history.recorder import Recorder
from app.history.store import MessageRow, Store
from engine import Failed, Finished
from tests.app.scripted import WORDS, finished, rounds_of


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(tmp_path / "history.sqlite3", clock)
    yield store
    store.close()


def say(store: Store, text: str = " ".join(WORDS), conversation: int | None = None) -> tuple[int, MessageRow]:
    """A prompt and its whole reply, recorded as the engine's thread does; returns conversation and reply."""
    conversation = conversation or store.create()
    prompt = store.add_user(conversation, store.leaf(conversation), "What is the capital of France?")
    reply = store.add_reply(conversation, prompt.id, "demo")
    record(store, reply.id, text)
    return conversation, next(m for m in store.messages(conversation) if m.id == reply.id)


def record(store: Store, message: int, text: str = " ".join(WORDS), last: Finished | Failed | None = None) -> None:
    """Record a reply of these words, and how it ended."""
    recorder = Recorder(store.path, message)
    rounds = list(rounds_of(text.split(" ")))
    for one in rounds:
        recorder(one)
    recorder(last or finished(rounds))
    assert recorder.problem == ""
