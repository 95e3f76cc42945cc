"""Who looks at the weights from another thread while memory is shared out sees nothing that never was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.files.checkpoint import Checkpoint
from engine.weights.statistics import WeightStatistics
from engine.weights.store import WeightStore
from tests.engine.weights.test_store import Opener, budget_at


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


class Onlooker:
    """Looks without a pause, in a thread of its own, and keeps what cannot be."""

    def __init__(self, store: WeightStore) -> None:
        self.faults: list[str] = []
        self._store = store
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        names = [unit.name for unit in self._store.units]
        before = WeightStatistics()
        while not self._ended.is_set():
            try:
                states, now = self._store.residency(), self._store.statistics()
            except Exception as error:
                self.faults.append(repr(error))
                continue
            if list(states) != names or not set(states.values()) <= {"resident", "ring", "reading", "disk"}:
                self.faults.append(f"{states}")
            if now.bytes_read < before.bytes_read or now.hits < before.hits or now.misses < before.misses:
                self.faults.append(f"{before} … {now}")
            before = now


def test_looking_while_memory_is_shared_out(checkpoint: Checkpoint, open_store: Opener, hectic: None) -> None:
    store = open_store(checkpoint, budget=budget_at(checkpoint, 0.6))
    with Onlooker(store) as first, Onlooker(store) as second:
        for turn in range(60):
            store.expect_drafts(0 if turn % 2 else 3)
            if turn % 5 == 0:
                store.set_budget(budget_at(checkpoint, turn / 60))
    assert first.faults + second.faults == []


def test_what_a_stop_left_holds_no_memory(checkpoint: Checkpoint, open_store: Opener) -> None:
    """An automatic budget counts what is held as free soon; it must not count it twice."""
    store = open_store(checkpoint, budget=budget_at(checkpoint, 0.7))
    read, cancel = store.statistics().bytes_read, CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        store.expect_drafts(0, cancel)
    assert store.statistics().memory_bytes == 0
    assert store.statistics().bytes_read >= read
    assert set(store.residency().values()) == {"disk"}
