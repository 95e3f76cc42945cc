"""The ring: what is next is there before it is asked for, nothing is read twice, and nothing in use is overwritten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.errors import Cancelled, OptionError, ReadError
from engine.weights.order import ExecutionOrder
from engine.weights.ranges import BLOCK, ByteRange, Layout, lay_out
from engine.weights.reader import Reader
from engine.weights.ring import Ring
from tests.engine.weights.faulty import FaultyFiles

LAYERS = 6
NAMES = [*(f"layers.{i}" for i in range(LAYERS)), "head"]
UNIT = 4 * BLOCK


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ring") / "weights.bin"
    file.write_bytes(np.random.default_rng(2).integers(0, 256, len(NAMES) * UNIT, np.uint8).tobytes())
    return file


def layouts(path: Path) -> dict[str, Layout]:
    return {name: lay_out([ByteRange(path, i * UNIT, UNIT)]) for i, name in enumerate(NAMES)}


class Streaming:
    """A ring over seven units of four blocks each."""

    def __init__(self, files: FaultyFiles, path: Path, units: float, threads: int = 2) -> None:
        self.files = files
        self.path = path
        self.content = np.frombuffer(path.read_bytes(), np.uint8)
        self.order = ExecutionOrder(NAMES, NAMES[-2])
        self.reader = Reader(files, direct=True, threads=threads)
        self.ring = Ring(self.reader, layouts(path), int(units * UNIT), self.order)

    def use(self, name: str, cancel: CancelToken | None = None) -> None:
        with self.reader.lock:
            self.order.visit(name)
            buffer = self.ring.acquire(name, cancel)
        begin = NAMES.index(name) * UNIT
        assert np.array_equal(buffer, self.content[begin : begin + UNIT])
        self.release(name)

    def release(self, name: str) -> None:
        with self.reader.lock:
            self.ring.release(name)

    def settle(self) -> None:
        with self.reader.lock:
            self.reader.wait("", lambda: self.reader.idle, None)

    def reads_of(self, name: str) -> int:
        return self.files.read_count(self.path.name, NAMES.index(name) * UNIT)


@pytest.fixture
def stream(files: FaultyFiles, path: Path) -> Iterator[Callable[..., Streaming]]:
    made: list[Streaming] = []

    def make(units: float, threads: int = 2) -> Streaming:
        made.append(Streaming(files, path, units, threads))
        return made[-1]

    yield make
    files.gate.set()
    for streaming in made:
        streaming.reader.close()


def test_it_runs_ahead_in_execution_order_as_far_as_there_is_space(stream: Callable[..., Streaming]) -> None:
    s = stream(3)
    with s.reader.lock:
        s.ring.run_ahead()
    s.settle()
    assert [s.ring.state(name) for name in NAMES] == ["ring"] * 3 + ["disk"] * 4


def test_it_runs_ahead_across_the_end_of_a_pass(stream: Callable[..., Streaming]) -> None:
    s = stream(3)
    for name in NAMES:
        s.use(name)
    s.settle()
    assert [name for name in NAMES if s.ring.state(name) == "ring"] == ["layers.0", "layers.1", "layers.2"]


def test_a_unit_is_read_once_a_pass(stream: Callable[..., Streaming]) -> None:
    s = stream(2.5)
    passes = 5
    for _ in range(passes):
        for name in NAMES:
            s.use(name)
            s.settle()
    assert all(passes <= s.reads_of(name) <= passes + 1 for name in NAMES)  # + 1: ahead for the pass that did not come
    assert s.ring.misses == 1


def test_units_of_a_drafting_loop_stay_while_it_runs(stream: Callable[..., Streaming]) -> None:
    s = stream(3)
    before = 0
    for turn in range(5):
        for name in (*NAMES, "head", "head", "head"):
            s.use(name)
            s.settle()
        if turn == 0:  # the first round is a surprise, the others are expected to be like it
            before = s.reads_of("head")
    assert s.reads_of("head") <= before + 4


def test_a_unit_in_use_is_not_overwritten(stream: Callable[..., Streaming]) -> None:
    s = stream(2)
    with s.reader.lock:
        s.order.visit("layers.0")
        held = s.ring.acquire("layers.0", None)
    before = held.copy()
    for name in NAMES[1:]:
        s.use(name)
    assert np.array_equal(held, before)
    s.release("layers.0")


def test_what_does_not_fit_beside_the_units_in_use_is_said(stream: Callable[..., Streaming]) -> None:
    s = stream(2)
    for name in NAMES[:2]:
        with s.reader.lock:
            s.order.visit(name)
            s.ring.acquire(name, None)
    with pytest.raises(OptionError, match=r"layers\.2"):
        s.use("layers.2")
    for name in NAMES[:2]:
        s.release(name)
    s.use("layers.2")


def test_an_unexpected_unit_takes_the_place_of_what_was_read_ahead(
    stream: Callable[..., Streaming], files: FaultyFiles
) -> None:
    s = stream(2, threads=1)
    files.gate.clear()
    with s.reader.lock:
        s.ring.run_ahead()
    threading.Timer(0.05, files.gate.set).start()
    s.use("head")
    s.use("layers.0")


def test_a_failed_read_is_tried_again_when_it_is_asked_for_again(
    stream: Callable[..., Streaming], files: FaultyFiles, path: Path
) -> None:
    s = stream(3)
    files.errors[path.name] = 5
    for _ in range(2):
        with pytest.raises(ReadError, match=path.name):
            s.use("layers.0")
    files.errors.clear()
    for name in NAMES:
        s.use(name)


def test_a_failure_while_running_ahead_is_no_failure_if_the_cause_is_gone(
    stream: Callable[..., Streaming], files: FaultyFiles, path: Path
) -> None:
    s = stream(3)
    files.errors[path.name] = 5
    with s.reader.lock:
        s.ring.run_ahead()
    s.settle()
    assert all(s.ring.state(name) == "disk" for name in NAMES)
    files.errors.clear()
    for name in NAMES * 2:
        s.use(name)


def test_cancel_leaves_the_ring_usable(stream: Callable[..., Streaming], files: FaultyFiles) -> None:
    s = stream(3)
    files.gate.clear()
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(Cancelled):
        s.use("layers.0", token)
    files.gate.set()
    for name in NAMES:
        s.use(name)
    assert s.reads_of("layers.0") <= 2


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(NAMES), max_size=40), st.floats(2, 7))
def test_any_order_of_units_gives_the_right_bytes(path: Path, uses: list[str], units: float) -> None:
    s = Streaming(FaultyFiles(), path, units)
    try:
        for name in uses:
            s.use(name)
    finally:
        s.reader.close()
