"""Plans: from headers only, consistent with what the store then does, better with more memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import OptionError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.model.state import AttentionCache, TrunkState
from engine.options import MAX_DRAFT_TOKENS
from engine.weights.plan import auto_budget, fitting_context, make_plan, session_bytes
from engine.weights.prediction import Machine
from engine.weights.store import WeightStore
from tests.conftest import DATA

DISK = Machine(read_bytes_per_s=1e9)


def test_a_plan_says_what_the_store_does(checkpoint: Checkpoint, open_store: Callable[..., WeightStore]) -> None:
    least = make_plan(checkpoint).minimum
    for budget in (None, least, 2 * least):
        plan = make_plan(checkpoint, budget=budget)
        store = open_store(checkpoint, budget=budget)
        memory = store.statistics()
        assert (plan.resident_bytes, plan.ring_bytes, plan.cache_bytes) == (
            memory.resident_bytes,
            memory.ring_bytes,
            memory.cache_bytes,
        )
        assert {unit.name for unit in plan.units if unit.resident} == set(store.allocation.resident)
        assert plan.streams == (not store.allocation.complete)


def test_keeping_everything_reads_nothing(checkpoint: Checkpoint) -> None:
    plan = make_plan(checkpoint, machine=DISK)
    assert not plan.streams
    assert all(p.read_bytes == 0 and p.round_s == p.compute_s for p in plan.predictions)


def test_one_prediction_per_draft_length(dense: Checkpoint) -> None:
    plan = make_plan(dense, machine=DISK)
    assert [p.draft_tokens for p in plan.predictions] == list(range(MAX_DRAFT_TOKENS + 1))
    assert plan.predictions[0].tokens_per_round == 1
    assert make_plan(dense).predictions == ()


def test_no_mtp_layer_no_drafts(data) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import replace

    checkpoint = open_checkpoint(data / "tiny-dense")
    bare = replace(checkpoint, tensors={n: s for n, s in checkpoint.tensors.items() if not n.startswith("mtp.")})
    assert [p.draft_tokens for p in make_plan(bare, machine=DISK).predictions] == [0]


_DENSE, _MOE = open_checkpoint(DATA / "tiny-dense"), open_checkpoint(DATA / "tiny-moe")


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([_DENSE, _MOE]), st.floats(0, 1.05), st.floats(0, 1.05))
def test_more_memory_never_predicts_fewer_tokens(checkpoint: Checkpoint, one: float, other: float) -> None:
    """At the draft length that the residency is chosen for (3): plain decoding may lose a layer's place to the MTP
    layer's."""
    base = make_plan(checkpoint)
    small, large = (
        make_plan(checkpoint, budget=base.minimum + int(share * (base.everything - base.minimum)), machine=DISK)
        for share in sorted((one, other))
    )
    assert small.total_bytes <= (small.budget or 0)
    assert large.total_bytes <= (large.budget or 0)
    assert small.predictions[3].tokens_per_s <= large.predictions[3].tokens_per_s * 1.001


def test_streaming_makes_drafts_pay_more(dense: Checkpoint) -> None:
    slow = Machine(read_bytes_per_s=1e8)
    streamed = make_plan(dense, budget=make_plan(dense).minimum * 2, machine=slow)
    resident = make_plan(dense, machine=slow)
    assert streamed.best is not None
    assert resident.best is not None
    assert streamed.best.draft_tokens > resident.best.draft_tokens


def test_unions_of_experts_grow_with_the_rows(moe: Checkpoint) -> None:
    reads = [p.read_bytes for p in make_plan(moe, budget=make_plan(moe).minimum, machine=DISK).predictions]
    assert reads[1] < reads[4] < reads[14]


def test_the_fp32_memory_of_a_conversation(dense: Checkpoint) -> None:
    c = dense.config
    one, two = (session_bytes(c, n, with_mtp=True) for n in (1000, 2000))
    assert two - one == 1000 * (c.layers.count("full") + 1) * 2 * c.kv_heads * c.head_dim * 4
    assert session_bytes(c, 1000, with_mtp=False) < one


@pytest.mark.parametrize("kind", KV_TYPES.values(), ids=list(KV_TYPES))
def test_the_memory_of_a_conversation_is_what_its_caches_take(dense: Checkpoint, kind: KvType) -> None:
    trunk = TrunkState(dense.config, 1000, kind)
    trunk.begin(1000)
    draft = AttentionCache(dense.config.kv_heads, dense.config.head_dim, kind)
    draft.reserve(1000, 1000)
    assert session_bytes(dense.config, 1000, with_mtp=False, kv=kind) == trunk.nbytes
    assert session_bytes(dense.config, 1000, with_mtp=True, kv=kind) == trunk.nbytes + draft.nbytes
    assert make_plan(dense, context=1000, kv=kind).session_bytes == trunk.nbytes + draft.nbytes


@pytest.mark.parametrize("kind", KV_TYPES.values(), ids=list(KV_TYPES))
def test_what_fits_is_as_much_as_fits(dense: Checkpoint, kind: KvType) -> None:
    c = dense.config
    positions = fitting_context(c, 50_000_000, with_mtp=True, kv=kind)
    assert session_bytes(c, positions, with_mtp=True, kv=kind) <= 50_000_000
    assert session_bytes(c, positions + 1, with_mtp=True, kv=kind) > 50_000_000
    assert fitting_context(c, 1000, with_mtp=True, kv=kind) == 0


def test_a_plan_says_how_much_fits_into_free_memory(dense: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(dense)
    free = SimpleNamespace(available=plan.total_bytes + session_bytes(dense.config, 321, with_mtp=True))
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    assert make_plan(dense).fitting_context == 321
    assert make_plan(dense, kv=KV_TYPES["q8"]).fitting_context > 3 * 321


def test_a_plan_is_json(checkpoint: Checkpoint) -> None:
    plan = make_plan(checkpoint, machine=DISK)
    read = json.loads(json.dumps(plan.as_dict()))
    assert read["minimum"] == plan.minimum
    assert len(read["units"]) == len(plan.units)


def test_below_the_minimum(checkpoint: Checkpoint) -> None:
    with pytest.raises(OptionError, match="needs at least"):
        make_plan(checkpoint, budget=make_plan(checkpoint).minimum - 1)


def test_the_context_is_bounded_by_the_model_s(dense: Checkpoint) -> None:
    assert make_plan(dense, context=10**9).context == dense.config.context
    assert make_plan(dense, context=100).session_bytes < make_plan(dense, context=200).session_bytes


def test_an_automatic_budget_leaves_a_margin() -> None:
    assert 0 < auto_budget(10_000, 1_000) < 9_000
    assert auto_budget(1_000, 2_000) == 0
