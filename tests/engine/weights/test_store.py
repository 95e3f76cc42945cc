"""The store: the same bytes at every budget, within it, and an account of what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, OptionError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.kernels.matrix import Matrix
from engine.weights import resident
from engine.weights import store as store_module
from engine.weights.allocation import minimum_budget
from engine.weights.plan import make_plan
from engine.weights.reader import Request
from engine.weights.sizes import place
from engine.weights.speed import ReadSpeed
from engine.weights.store import WeightStore
from tests.engine.weights.faulty import FaultyFiles

Opener = Callable[..., WeightStore]
BUDGETS = (0.0, 0.25, 0.5, 0.75, 0.999)


def budget_at(checkpoint: Checkpoint, share: float) -> int:
    sizes = place(checkpoint, None, 3).sizes
    return minimum_budget(sizes) + int(share * (sizes.everything - minimum_budget(sizes)))


def one_pass(store: WeightStore, drafts: int = 2) -> dict[str, bytes]:
    """Every matrix's bytes, as one round uses them."""
    found: dict[str, bytes] = {}

    def keep(prefix: str, matrices: dict[str, Matrix]) -> None:
        found.update({f"{prefix}{name}": m.data.tobytes() for name, m in matrices.items()})

    trunk = [unit for unit in store.units if unit.name not in ("mtp", "draft_head")]
    drafting = [unit for unit in store.units if unit not in trunk] * drafts
    for unit in (*trunk, *drafting):
        keep(f"{unit.name}/", dict(store.acquire(unit.name)))
        if unit.parts:
            experts = store.experts(unit.name, [part.expert for part in unit.parts])
            for expert in experts:
                keep(f"{unit.name}/{expert}/", dict(experts[expert]))
        store.release(unit.name)
    return found


def rows(store: WeightStore, checkpoint: Checkpoint) -> np.ndarray:
    out = np.empty((40, checkpoint.config.hidden_size), np.float32)
    store.embedding(np.arange(0, 1000, 25), out)
    return out


def test_o20_the_same_bytes_at_every_budget(checkpoint: Checkpoint, open_store: Opener) -> None:
    everything = open_store(checkpoint)
    expected, table = one_pass(everything), rows(everything, checkpoint)
    assert everything.allocation.complete
    for share in BUDGETS:
        store = open_store(checkpoint, budget=budget_at(checkpoint, share))
        assert not store.allocation.complete
        for _ in range(3):
            assert one_pass(store) == expected
        np.testing.assert_array_equal(rows(store, checkpoint), table)


def test_a_head_in_pieces_needs_less_memory_and_has_the_same_rows(data: Path, open_store: Opener) -> None:
    checkpoint = open_checkpoint(data.parent.parent / "resources" / "demo")  # its head is larger than a layer
    whole = open_store(checkpoint)
    least = make_plan(checkpoint, split_heads=True).minimum
    assert least < make_plan(checkpoint).minimum
    store = open_store(checkpoint, budget=least, split_heads=True)
    pieces = store.pieces("head")
    assert len(pieces) > 1
    rows_in_order = []
    for piece in pieces:
        rows_in_order.append(store.acquire(piece)["weight"].data.tobytes())
        store.release(piece)
    assert b"".join(rows_in_order) == whole.acquire("head")["weight"].data.tobytes()
    assert whole.pieces("head") == ("head",)
    assert whole.draft_step_bytes == store.draft_step_bytes
    store.set_budget(None)
    assert store.pieces("head") == ("head",)
    np.testing.assert_array_equal(rows(store, checkpoint), rows(whole, checkpoint))


def test_three_of_the_largest_unit_is_budget_enough(checkpoint: Checkpoint, open_store: Opener) -> None:
    units = place(checkpoint, None, 3).units
    store = open_store(checkpoint, budget=3 * max(unit.nbytes for unit in units))
    assert one_pass(store) == one_pass(open_store(checkpoint))


@pytest.mark.parametrize("share", BUDGETS)
def test_memory_stays_within_the_budget(checkpoint: Checkpoint, open_store: Opener, share: float) -> None:
    budget = budget_at(checkpoint, share)
    store = open_store(checkpoint, budget=budget)
    one_pass(store)
    rows(store, checkpoint)
    vectors = sum(v.nbytes for v in store._vectors.values())
    buffers = {id(m.data.base): m.data.base.nbytes for u in store._resident.units.values() for m in u.values()}
    ring = store._ring.nbytes if store._ring else 0
    cache = store._experts.nbytes if store._experts else 0
    scratch = sum(table.scratch_bytes for table in store._tables.values())
    assert vectors + sum(buffers.values()) + ring + cache + scratch <= store.statistics().memory_bytes <= budget


def test_a_tied_head_is_kept_once(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense)
    weight = store.acquire("head")["weight"]
    assert store._tables["embed_tokens.weight"]._matrix is weight
    assert store._resident.tables == {}


def test_an_untied_table_is_resident_without_a_budget_and_read_by_rows_with_one(
    moe: Checkpoint, open_store: Opener, files: FaultyFiles
) -> None:
    spec = moe.spec("embed_tokens.weight")
    assert set(open_store(moe)._resident.tables) == {spec.name}
    files.reads.clear()
    store = open_store(moe, budget=budget_at(moe, 0.9))
    assert files.read_count(spec.file.name, spec.offset + spec.nbytes // 2) == 0
    rows(store, moe)


def test_o06_the_ranges_of_embedding_rows_can_be_listed(checkpoint: Checkpoint, open_store: Opener) -> None:
    spec = checkpoint.spec("embed_tokens.weight")
    first, last = open_store(checkpoint).embedding_ranges(np.array([0, spec.shape[0] - 1]))
    assert (first.file, first.offset) == (spec.file, spec.offset)
    assert last.end == spec.offset + spec.nbytes


@pytest.mark.parametrize("share", [None, 0.0])
def test_an_id_outside_the_table_is_refused(dense: Checkpoint, open_store: Opener, share: float | None) -> None:
    store = open_store(dense, budget=None if share is None else budget_at(dense, share))
    out = np.empty((1, dense.config.hidden_size), np.float32)
    for wrong in (-1, dense.config.vocabulary):
        with pytest.raises(ValueError, match="Token ids"):
            store.embedding(np.array([wrong]), out)


def test_repeated_and_unordered_ids(dense: Checkpoint, open_store: Opener) -> None:
    ids = np.array([7, 3, 7, 1000, 3, 4])
    full, streamed = (np.empty((6, dense.config.hidden_size), np.float32) for _ in range(2))
    open_store(dense).embedding(ids, full)
    open_store(dense, budget=budget_at(dense, 0)).embedding(ids, streamed)
    np.testing.assert_array_equal(full, streamed)


def test_o21_nothing_streamed_is_read_twice_in_one_pass(
    dense: Checkpoint, open_store: Opener, files: FaultyFiles
) -> None:
    store = open_store(dense, budget=budget_at(dense, 0.3))
    for _ in range(3):
        one_pass(store)
    before = store.statistics()
    one_pass(store)
    streamed = sum(store._placement.layouts[name].nbytes for name in store.allocation.streamed)
    assert store.statistics().since(before).bytes_read <= streamed + store.allocation.ring_bytes


def test_the_account(checkpoint: Checkpoint, open_store: Opener, files: FaultyFiles) -> None:
    store = open_store(checkpoint, budget=budget_at(checkpoint, 0.3))
    before = store.statistics()
    one_pass(store)
    counted = store.statistics().since(before)
    uses = len(store.units) + (1 if any(u.name == "mtp" for u in store.units) else 0)  # two drafting steps
    assert counted.hits + counted.misses == uses
    assert counted.expert_hits + counted.expert_misses == sum(
        len(u.parts) * (2 if u.name == "mtp" else 1) for u in store.units
    )
    assert counted.bytes_read > 0
    assert counted.read_s > 0
    assert 0 <= counted.overlap <= 1
    assert counted.as_dict()["memory_bytes"] == counted.memory_bytes
    assert store.statistics().bytes_read <= sum(size for _, _, size in files.reads)


def test_everything_in_memory_reads_nothing_any_more(checkpoint: Checkpoint, open_store: Opener) -> None:
    store = open_store(checkpoint)
    before = store.statistics()
    one_pass(store)
    rows(store, checkpoint)
    counted = store.statistics().since(before)
    assert (counted.bytes_read, counted.misses, counted.wait_s) == (0, 0, 0.0)


def test_o22_bytes_of_a_draft_step(dense: Checkpoint, moe: Checkpoint, open_store: Opener) -> None:
    sizes = {unit.name: unit for unit in open_store(dense).units}
    assert open_store(dense).draft_step_bytes == sizes["mtp"].nbytes + sizes["head"].nbytes
    sizes = {unit.name: unit for unit in open_store(moe).units}
    experts = moe.config.experts_per_token * sizes["mtp"].parts[0].nbytes
    assert open_store(moe).draft_step_bytes == sizes["mtp"].nbytes + sizes["head"].nbytes + experts


def test_where_each_unit_is(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense, budget=budget_at(dense, 0.5))
    one_pass(store)
    states = store.residency()
    assert list(states) == [unit.name for unit in store.units]
    assert {name for name, state in states.items() if state == "resident"} == set(store.allocation.resident)
    assert set(states.values()) <= {"resident", "ring", "reading", "disk"}
    assert set(open_store(dense).residency().values()) == {"resident"}


def test_progress_ends_at_the_total(checkpoint: Checkpoint, open_store: Opener) -> None:
    steps: list[tuple[int, int]] = []
    open_store(checkpoint, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] > 0
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_progress_counts_what_was_read_before_anybody_looked(
    dense: Checkpoint, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, steps = resident._wait, []

    def late(requests: Mapping[str, Request], *rest: Any) -> None:
        while not all(request.done for request in requests.values()):
            time.sleep(0.001)
        wait(requests, *rest)

    monkeypatch.setattr(resident, "_wait", late)
    open_store(dense, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] > 0


def test_cancel_while_loading_closes_everything(dense: Checkpoint, open_store: Opener, files: FaultyFiles) -> None:
    token = CancelToken()
    with pytest.raises(Cancelled):
        open_store(dense, progress=lambda done, total: token.cancel(), cancel=token)
    assert files.opened == files.closed


def test_too_small_a_budget_is_refused_before_anything_is_read(
    checkpoint: Checkpoint, open_store: Opener, files: FaultyFiles
) -> None:
    with pytest.raises(OptionError, match="needs at least"):
        open_store(checkpoint, budget=budget_at(checkpoint, 0) - 1)
    assert not files.opened


def test_another_budget_without_opening_again(checkpoint: Checkpoint, open_store: Opener) -> None:
    store = open_store(checkpoint)
    expected = one_pass(store)
    for share in (0.5, 0.0, 0.9, None, 0.2):
        store.set_budget(None if share is None else budget_at(checkpoint, share))
        assert one_pass(store) == expected


def test_another_budget_reads_only_what_is_new(dense: Checkpoint, open_store: Opener, files: FaultyFiles) -> None:
    store = open_store(dense, budget=budget_at(dense, 0.5))
    spec = dense.spec("mtp.fc.weight")
    assert "mtp" in store.allocation.resident
    before = files.read_count(spec.file.name, spec.offset)
    bytes_before = store.statistics().bytes_read
    store.set_budget(budget_at(dense, 0.8))
    assert files.read_count(spec.file.name, spec.offset) == before
    assert store.statistics().bytes_read >= bytes_before  # counters go on


def test_a_refused_budget_leaves_the_store_as_it_was(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense, budget=budget_at(dense, 0.5))
    expected = one_pass(store)
    with pytest.raises(OptionError):
        store.set_budget(1)
    assert one_pass(store) == expected


def test_an_unknown_unit(dense: Checkpoint, open_store: Opener) -> None:
    for budget in (None, budget_at(dense, 0.5)):
        with pytest.raises(KeyError, match=r"layers\.99"):
            open_store(dense, budget=budget).acquire("layers.99")


def test_a_closed_store_still_gives_its_account(dense: Checkpoint, open_store: Opener) -> None:
    store = open_store(dense)
    read = store.statistics().bytes_read
    store.close()
    store.close()
    assert store.statistics().bytes_read == read
    assert set(store.residency().values()) == {"disk"}


@pytest.mark.parametrize(("liked", "used"), [(4, 8), (16, 16)])
def test_the_number_of_reads_at_once_is_measured_once_and_never_small(
    liked: int, used: int, dense: Checkpoint, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Path] = []

    def measure(path: Path, **_: object) -> ReadSpeed:
        measured.append(path)
        return ReadSpeed(1e9, liked, True, 1, 1.0)

    monkeypatch.setattr(store_module, "measure_read_speed", measure)
    monkeypatch.setattr(store_module, "_WORTH_MEASURING", 1)
    store = open_store(dense, threads=None)
    assert measured == []
    for share in (0.2, 0.6):
        store.set_budget(budget_at(dense, share))
        assert len(store._reader._threads) == used
    assert len(measured) == 1


def test_names(checkpoint: Checkpoint, open_store: Opener) -> None:
    store = open_store(checkpoint)
    assert store.has("norm.weight")
    assert store.has("mtp.fc.weight") == checkpoint.has("mtp.fc.weight")
    assert not store.has("nothing")
    with pytest.raises(KeyError):
        store.vector("nothing")
