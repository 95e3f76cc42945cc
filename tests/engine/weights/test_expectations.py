"""What drafting uses stays in memory only while it drafts; whatever goes wrong in between, no byte is wrong."""

from __future__ import annotations

import errno

import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, ReadError
from engine.files.checkpoint import Checkpoint
from engine.weights.store import WeightStore
from tests.engine.weights.faulty import FaultyFiles
from tests.engine.weights.test_store import Opener, budget_at, one_pass


def kept(store: WeightStore) -> set[str]:
    return {unit for unit, state in store.residency().items() if state == "resident"}


def test_what_drafting_uses_is_kept_while_it_drafts(dense: Checkpoint, open_store: Opener) -> None:
    expected = one_pass(open_store(dense))
    store = open_store(dense, budget=budget_at(dense, 0.7))
    drafting = kept(store)
    assert "mtp" in drafting
    store.expect_drafts(0)
    assert "mtp" not in kept(store)
    assert len(kept(store)) >= len(drafting), "the memory goes to what is used"
    assert store.statistics().memory_bytes <= budget_at(dense, 0.7)
    assert one_pass(store) == expected, "it may still be asked for"
    store.expect_drafts(3)
    assert kept(store) == drafting
    assert one_pass(store) == expected


def test_nothing_moves_without_need(dense: Checkpoint, open_store: Opener, files: FaultyFiles) -> None:
    complete, store = open_store(dense), open_store(dense, budget=budget_at(dense, 0.7))
    store.expect_drafts(0)
    assert not complete.would_move(0)
    assert not store.would_move(0)
    one_pass(store)
    read = store.statistics().bytes_read
    reads = len(files.reads)
    complete.expect_drafts(0)
    store.expect_drafts(0)
    assert (store.statistics().bytes_read, len(files.reads)) == (read, reads)


def test_a_budget_set_afterwards_keeps_the_expectation(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense)
    store.expect_drafts(0)
    store.set_budget(budget_at(dense, 0.7))
    store.expect_drafts(0)
    assert "mtp" not in kept(store)
    store.set_budget(budget_at(dense, 0.6))
    assert "mtp" not in kept(store)


def test_a_bad_disk_in_between_is_told_and_the_next_call_tries_again(
    checkpoint: Checkpoint, open_store: Opener, files: FaultyFiles
) -> None:
    expected = one_pass(open_store(checkpoint))
    store = open_store(checkpoint, budget=budget_at(checkpoint, 0.7))
    files.errors = {file.name: errno.EIO for file in checkpoint.files}
    for _ in range(2):
        with pytest.raises(ReadError, match=r"at byte \d+"):
            store.expect_drafts(0)
    files.errors = {}
    store.expect_drafts(0)
    assert one_pass(store) == expected


def test_a_stop_in_between(checkpoint: Checkpoint, open_store: Opener) -> None:
    expected = one_pass(open_store(checkpoint))
    store = open_store(checkpoint, budget=budget_at(checkpoint, 0.7))
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        store.expect_drafts(0, cancel)
    store.expect_drafts(0)
    assert one_pass(store) == expected


def test_who_closed_a_store_keeps_it_closed(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense, budget=budget_at(dense, 0.7))
    store.close()
    store.expect_drafts(0)
    with pytest.raises(ReadError, match="no longer open"):
        one_pass(store)
