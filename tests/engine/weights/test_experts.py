"""Routed experts on demand: the right bytes, one read while they stay, those of most use kept, guesses that pay."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, OptionError, ReadError
from engine.weights import prefetch
from engine.weights.expert_cache import ExpertCache, slot_bytes
from engine.weights.expert_view import ExpertView
from engine.weights.order import ExecutionOrder
from engine.weights.prefetch import ExpertPrefetcher
from engine.weights.ranges import BLOCK, ByteRange
from engine.weights.reader import Reader
from engine.weights.units import Part, UnitTensor
from tests.engine.weights.faulty import FaultyFiles

COUNT = 10
SIZE = 3 * BLOCK
UNITS = ("layers.0", "layers.1")


class Setup:
    """Two layers of ten experts of one matrix each, in one file."""

    def __init__(self, files: FaultyFiles, path: Path, slots: int, *, guessing: bool = False) -> None:
        self.files, self.path = files, path
        self.content = np.frombuffer(path.read_bytes(), np.uint8)
        self.parts = {unit: {e: part(path, i, e) for e in range(COUNT)} for i, unit in enumerate(UNITS)}
        self.reader = Reader(files, direct=True, threads=1)
        self.cache = ExpertCache(self.reader, self.parts, slots * slot_bytes(self.parts), {})
        self.order = ExecutionOrder(UNITS, UNITS[-1])
        if guessing:
            self.prefetcher = ExpertPrefetcher(self.cache, self.order)
            self.reader.on_idle = self.prefetcher.disk_is_idle

    def use(self, unit: str, ids: list[int], cancel: CancelToken | None = None) -> None:
        with self.reader.lock:
            self.order.visit(unit)
        view = ExpertView(self.cache, self.reader, unit, ids, cancel)
        try:
            for expert in view:
                begin = self.place(unit, expert)
                assert np.array_equal(view[expert]["w"].data, self.content[begin : begin + SIZE])
                assert view[expert] is view[expert]
        finally:
            view.close()

    def place(self, unit: str, expert: int) -> int:
        return (UNITS.index(unit) * COUNT + expert) * SIZE

    def reads_of(self, unit: str, expert: int) -> int:
        return self.files.read_count(self.path.name, self.place(unit, expert))

    def settle(self) -> None:
        with self.reader.lock:
            self.reader.wait("", lambda: self.reader.idle, None)


def part(path: Path, unit: int, expert: int) -> Part:
    where = ByteRange(path, (unit * COUNT + expert) * SIZE, SIZE)
    return Part(expert, (UnitTensor("w", "BF16", 2, SIZE // 4, where),))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("experts") / "weights.bin"
    file.write_bytes(np.random.default_rng(3).integers(0, 256, len(UNITS) * COUNT * SIZE, np.uint8).tobytes())
    return file


@pytest.fixture
def make(files: FaultyFiles, path: Path) -> Iterator[type]:
    made: list[Setup] = []

    class Closing(Setup):
        def __init__(self, slots: int, **settings: bool) -> None:
            super().__init__(files, path, slots, **settings)
            made.append(self)

    yield Closing
    files.gate.set()
    for setup in made:
        setup.reader.close()


@pytest.mark.parametrize("slots", [2, 3, 5, 20])
def test_the_right_bytes_with_any_number_of_slots(make: type[Setup], slots: int) -> None:
    s = make(slots)
    random = np.random.default_rng(4)
    for step in range(20):
        ids = sorted(random.choice(COUNT, random.integers(1, COUNT + 1), replace=False).tolist())
        s.use(UNITS[step % 2], ids)


def test_o12_only_routed_experts_are_read_and_each_once(make: type[Setup]) -> None:
    s = make(20)
    for _ in range(3):
        s.use("layers.0", [1, 4])
    assert [s.reads_of("layers.0", e) for e in range(COUNT)] == [0, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    assert s.cache.hits + s.cache.misses == 6
    assert s.cache.misses <= 2


def test_one_pass_reads_no_expert_twice_even_in_two_slots(make: type[Setup]) -> None:
    s = make(2)
    s.use("layers.0", list(range(COUNT)))
    assert [s.reads_of("layers.0", e) for e in range(COUNT)] == [1] * COUNT


def test_what_a_pass_still_needs_is_not_evicted_for_what_it_needs_later(make: type[Setup]) -> None:
    s = make(4)
    view = ExpertView(s.cache, s.reader, "layers.0", range(COUNT), None)
    for expert in view:
        s.settle()
        assert view[expert]
    view.close()
    assert [s.reads_of("layers.0", e) for e in range(COUNT)] == [1] * COUNT


def test_what_is_used_most_stays(make: type[Setup]) -> None:
    s = make(3)
    for rare in (3, 4, 5, 6, 7, 8):
        s.use("layers.0", [1, rare])
    assert s.reads_of("layers.0", 1) == 1


def test_following_experts_are_read_while_one_is_in_use(make: type[Setup]) -> None:
    s = make(5)
    view = ExpertView(s.cache, s.reader, "layers.0", [1, 2, 3], None)
    assert view[1]
    s.settle()
    assert s.reads_of("layers.0", 3) == 1
    view.close()


def test_what_a_cancelled_pass_wanted_is_given_up(make: type[Setup], files: FaultyFiles) -> None:
    s = make(6)
    files.gate.clear()
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(Cancelled):
        s.use("layers.0", [1, 2, 3, 4], token)
    files.gate.set()
    s.settle()
    assert s.reads_of("layers.0", 4) == 0
    s.use("layers.0", [1, 2, 3, 4])


def test_a_failed_read_is_tried_again(make: type[Setup], files: FaultyFiles, path: Path) -> None:
    s = make(4)
    files.errors[path.name] = 5
    for _ in range(5):  # a failed read must not cost a slot
        with pytest.raises(ReadError, match=path.name):
            s.use("layers.0", [1, 2])
        s.settle()
    files.errors.clear()
    s.use("layers.0", [1, 2, 3, 4])
    assert len(s.cache._entries) + len(s.cache._free) == 4


def test_more_experts_in_use_than_slots_is_said(make: type[Setup]) -> None:
    s = make(2)
    with s.reader.lock:
        s.cache.pin(("layers.0", 0), None)
        s.cache.pin(("layers.0", 1), None)
        with pytest.raises(OptionError, match="2 slots"):
            s.cache.pin(("layers.0", 2), None)


def test_the_cache_never_exceeds_its_bytes(make: type[Setup]) -> None:
    s = make(3)
    assert s.cache.nbytes == 3 * slot_bytes(s.parts)
    s.use("layers.0", list(range(COUNT)))
    assert s.cache.nbytes == 3 * slot_bytes(s.parts)
    assert len(s.cache._entries) <= 3


def test_idle_time_brings_back_what_the_last_pass_used(make: type[Setup]) -> None:
    s = make(6, guessing=True)
    for _ in range(6):
        s.use("layers.1", [0, 1, 2])  # famous
    s.use("layers.0", [5, 6, 7, 8])  # crowds one of them out at most: the famous are worth more
    s.use("layers.1", [0, 1, 2])
    s.settle()
    assert s.cache.guesses >= 0
    assert s.cache.guessed_bytes <= s.cache.nbytes / prefetch.CACHE_SHARE + slot_bytes(s.parts)


def test_a_guess_that_is_used_counts_as_good(make: type[Setup]) -> None:
    s = make(20, guessing=True)
    s.cache.last_used["layers.0"] = (2,)
    with s.reader.lock:
        s.order.visit("layers.0")
        s.prefetcher.disk_is_idle()
    s.settle()
    assert (s.cache.guesses, s.cache.good_guesses) == (1, 0)
    s.use("layers.0", [2])
    assert (s.cache.guesses, s.cache.good_guesses, s.cache.misses) == (1, 1, 0)


def test_bad_guesses_switch_guessing_off_and_good_ones_keep_it(make: type[Setup]) -> None:
    s = make(20, guessing=True)
    s.cache.bad_guesses = prefetch._TRIAL
    with s.reader.lock:
        s.prefetcher.disk_is_idle()
        assert not s.prefetcher.active
    s = make(20, guessing=True)
    s.cache.good_guesses = prefetch._TRIAL
    with s.reader.lock:
        s.prefetcher.disk_is_idle()
        assert s.prefetcher.active


def test_a_pause_ends_and_the_next_one_is_longer(make: type[Setup]) -> None:
    s = make(20, guessing=True)
    pauses = []
    with s.reader.lock:
        for _ in range(2):
            s.cache.bad_guesses += prefetch._TRIAL
            s.prefetcher.disk_is_idle()
            length = 0
            while not s.prefetcher.active:
                s.prefetcher.disk_is_idle()
                length += 1
            pauses.append(length)
    assert pauses[1] == 2 * pauses[0]
