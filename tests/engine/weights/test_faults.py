"""A disk that fails mid-reply: the message names the place, and the session goes on once the cause is gone."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, ReadError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.weights import reader as reader_module
from engine.weights.allocation import minimum_budget
from engine.weights.reader import Stall
from engine.weights.sizes import place
from engine.weights.store import ReadOptions, WeightStore, open_weights
from tests.engine.weights.faulty import FaultyFiles
from tests.engine.weights.test_store import one_pass

Opener = Callable[..., WeightStore]


@pytest.fixture
def streaming(checkpoint: Checkpoint, open_store: Opener) -> WeightStore:
    """As little memory as possible: everything passes through ring and cache."""
    return open_store(checkpoint, budget=minimum_budget(place(checkpoint, None, 3).sizes))


def name_of(checkpoint: Checkpoint) -> str:
    return checkpoint.spec("layers.1.mlp.gate_proj.weight" if not checkpoint.config.moe else "norm.weight").file.name


def test_a_read_error_is_one_sentence_and_the_session_goes_on(
    checkpoint: Checkpoint, streaming: WeightStore, files: FaultyFiles
) -> None:
    expected = one_pass(streaming)
    files.errors = {file.name: errno.EIO for file in checkpoint.files}
    for _ in range(2):
        with pytest.raises(ReadError, match=r"Reading .* at byte \d+ failed"):
            one_pass(streaming)
        release_all(streaming)
    files.errors = {}
    assert one_pass(streaming) == expected


def test_a_file_cut_short_is_named_with_what_is_missing(
    checkpoint: Checkpoint, streaming: WeightStore, files: FaultyFiles
) -> None:
    expected = one_pass(streaming)
    files.ends = {file.name: 200_000 for file in checkpoint.files}
    with pytest.raises(ReadError, match=r"ends at byte 200000|ends at byte"):
        one_pass(streaming)
    release_all(streaming)
    files.ends = {}
    assert one_pass(streaming) == expected


def test_a_file_that_was_replaced_by_a_shorter_one_and_put_back(data: Path, tmp_path: Path) -> None:
    """On the real file system: the file is truncated in place while it is open, then restored."""
    folder = tmp_path / "model"
    shutil.copytree(data / "tiny-dense", folder, ignore=shutil.ignore_patterns("*.npz", "gguf"))
    checkpoint = open_checkpoint(folder)
    store = open_weights(checkpoint, budget=minimum_budget(place(checkpoint, None, 3).sizes))
    try:
        expected = one_pass(store)
        path = checkpoint.files[0]
        whole = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(100_000)
        with pytest.raises(ReadError, match=f"{path.name} ends at byte"):
            several_passes(store, 2)
        release_all(store)
        path.write_bytes(whole)
        assert one_pass(store) == expected
    finally:
        store.close()


def test_a_file_that_was_removed_and_put_back(
    checkpoint: Checkpoint, streaming: WeightStore, files: FaultyFiles
) -> None:
    """Where an open file does not survive its removal (network shares): reads fail, and so does opening it again."""
    expected = one_pass(streaming)
    files.errors = {file.name: errno.ESTALE for file in checkpoint.files}
    files.missing = {file.name for file in checkpoint.files}
    for _ in range(2):
        with pytest.raises(ReadError):
            one_pass(streaming)
        release_all(streaming)
    files.errors, files.missing = {}, set()
    assert one_pass(streaming) == expected


def test_a_stalled_disk_is_reported_and_waited_for(
    checkpoint: Checkpoint, open_store: Opener, files: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_STALL_AFTER", "_REPORT_EVERY", "_POLL"):
        monkeypatch.setattr(reader_module, name, 0.01)
    stalls: list[Stall] = []

    def note(stall: Stall) -> None:
        stalls.append(stall)
        files.gate.set()

    store = open_store(checkpoint, budget=minimum_budget(place(checkpoint, None, 3).sizes), on_stall=note)
    expected = one_pass(store)
    files.gate.clear()
    assert one_pass(store) == expected
    assert stalls
    assert stalls[0].file in {file.name for file in checkpoint.files}


@pytest.mark.parametrize("threads", [1, 4])
def test_cancel_gets_through_a_stalled_disk(
    checkpoint: Checkpoint, open_store: Opener, files: FaultyFiles, threads: int
) -> None:
    store = open_store(checkpoint, budget=minimum_budget(place(checkpoint, None, 3).sizes), threads=threads)
    expected = one_pass(store)
    for unit in ("layers.0", "head"):
        files.gate.clear()
        token = CancelToken()
        threading.Timer(0.02, token.cancel).start()
        with pytest.raises(Cancelled):
            several_passes(store, 50, token)  # a few units may be in memory already
        files.gate.set()
        store.acquire(unit)
        store.release(unit)
    assert one_pass(store) == expected


def test_cancel_gets_through_while_embedding_rows_are_read(
    checkpoint: Checkpoint, streaming: WeightStore, files: FaultyFiles
) -> None:
    ids = np.arange(40)
    out, again = (np.empty((40, checkpoint.config.hidden_size), np.float32) for _ in range(2))
    streaming.embedding(ids, out)
    files.gate.clear()
    token = CancelToken()
    threading.Timer(0.02, token.cancel).start()
    with pytest.raises(Cancelled):
        streaming.embedding(ids, again, cancel=token)
    files.gate.set()
    streaming.embedding(ids, again)
    np.testing.assert_array_equal(out, again)


def test_a_read_error_while_loading_leaves_nothing_open(checkpoint: Checkpoint, files: FaultyFiles) -> None:
    class FailsLater(FaultyFiles):
        def open(self, path, *, direct):  # type: ignore[no-untyped-def]
            if threading.current_thread() is not threading.main_thread():
                self.errors[path.name] = errno.EIO
            return super().open(path, direct=direct)

    failing = FailsLater()
    with pytest.raises(ReadError):
        open_weights(checkpoint, reading=ReadOptions(failing, 3))
    assert failing.opened == failing.closed


def test_faults_at_random_never_give_wrong_bytes(dense: Checkpoint, open_store: Opener, files: FaultyFiles) -> None:
    store = open_store(dense, budget=minimum_budget(place(dense, None, 3).sizes))
    expected = one_pass(store)
    random = np.random.default_rng(5)
    failures = 0
    for _ in range(60):
        fault = random.integers(3)
        if fault == 0:
            files.errors = {dense.files[random.integers(2)].name: errno.EIO}
        elif fault == 1:
            files.ends = {dense.files[random.integers(2)].name: int(random.integers(2_000_000))}
        try:
            assert one_pass(store) == expected
        except ReadError:
            failures += 1
            release_all(store)
        files.errors, files.ends = {}, {}
    assert 5 < failures < 60
    assert one_pass(store) == expected


def several_passes(store: WeightStore, count: int, cancel: CancelToken | None = None) -> None:
    for unit in store.units * count:
        store.acquire(unit.name, cancel)
        store.release(unit.name)


def release_all(store: WeightStore) -> None:
    """What the model's `finally` clauses do."""
    for unit in store.units:
        ring = store._ring
        if ring is not None and unit.name in ring._blocks:
            while ring._blocks[unit.name].holders:
                store.release(unit.name)
    for name in list(store._views):
        with store._reader.lock:
            store._views.pop(name).close()
