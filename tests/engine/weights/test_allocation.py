"""How a budget is shared out: never more than it, never less saved with more of it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.errors import OptionError
from engine.weights.allocation import RING_BLOCKS, ROOMY_BLOCKS, Allocation, Sizes, allocate, minimum_budget, worth

PAGE = 4096


@st.composite
def all_sizes(draw: st.DrawFn) -> Sizes:
    layers = draw(st.lists(st.integers(1, 40), min_size=1, max_size=12))
    units = {f"layers.{i}": n * PAGE for i, n in enumerate(layers)} | {"head": draw(st.integers(1, 200)) * PAGE}
    uses = dict.fromkeys(units, 1.0)
    if draw(st.booleans()):
        units["mtp"] = draw(st.integers(1, 60)) * PAGE
        uses["mtp"] = draw(st.floats(0.5, 14.5))
    count = draw(st.integers(0, 30))
    slot = draw(st.integers(1, 10)) * PAGE if count else 0
    return Sizes(
        units, uses, experts=count * slot, expert_slot=slot, expert_count=count,
        tables=draw(st.integers(0, 100)) * PAGE, vectors=draw(st.integers(0, 9000)), scratch=draw(st.integers(0, 9000)),
    )  # fmt: skip


@given(all_sizes(), st.floats(0, 1))
def test_the_budget_is_kept_and_every_unit_has_a_place(sizes: Sizes, share: float) -> None:
    least = minimum_budget(sizes)
    budget = least + int(share * (sizes.everything * 1.1 - least))
    allocation = allocate(sizes, budget)
    assert allocation.total <= budget
    assert sorted((*allocation.resident, *allocation.streamed)) == sorted(sizes.units)
    assert allocation.resident == tuple(name for name in sizes.units if name in allocation.resident)
    assert allocation.complete == (budget >= sizes.everything)
    if allocation.streamed:
        assert allocation.ring_bytes >= RING_BLOCKS * max(sizes.units[name] for name in allocation.streamed)
    if sizes.expert_count and not allocation.complete:
        assert allocation.cache_bytes >= min(2, sizes.expert_count) * sizes.expert_slot


@given(all_sizes(), st.floats(0, 1), st.floats(0, 1))
def test_more_memory_is_never_worth_less(sizes: Sizes, one: float, other: float) -> None:
    least = minimum_budget(sizes)
    small, large = (least + int(share * (sizes.everything - least)) for share in sorted((one, other)))
    assert worth(sizes, allocate(sizes, small)) <= worth(sizes, allocate(sizes, large))
    less, more = (
        sum(sizes.units[name] * sizes.uses[name] for name in allocate(sizes, budget).resident)
        for budget in (small, large)
    )
    assert less <= more + 1.25 * max(sizes.units.values()), "no more is read than a third block in the ring costs"


@given(all_sizes())
def test_just_below_the_minimum_is_refused(sizes: Sizes) -> None:
    assume(minimum_budget(sizes) > 0)
    with pytest.raises(OptionError, match="needs at least"):
        allocate(sizes, minimum_budget(sizes) - 1)


def test_no_budget_keeps_everything() -> None:
    sizes = Sizes({"layers.0": PAGE, "head": PAGE}, {"layers.0": 1, "head": 1}, tables=PAGE, vectors=10)
    allocation = allocate(sizes, None)
    assert allocation == Allocation(("layers.0", "head"), (), True, 3 * PAGE + 10, 0, 0)


def test_what_drafting_uses_stays_first() -> None:
    units = {f"layers.{i}": 10 * PAGE for i in range(8)} | {"head": 10 * PAGE, "mtp": 10 * PAGE}
    sizes = Sizes(units, dict.fromkeys(units, 1.0) | {"head": 4.5, "mtp": 3.5})
    assert allocate(sizes, 30 * PAGE).resident == ("head",)
    assert allocate(sizes, 40 * PAGE).resident == ("head", "mtp")


def test_layers_that_stay_are_spread_over_the_pass() -> None:
    units = {f"layers.{i}": PAGE for i in range(16)}
    kept = allocate(Sizes(units, dict.fromkeys(units, 1.0)), 7 * PAGE).resident
    places = [int(name[7:]) for name in kept]
    assert len(places) == 4
    assert max(b - a for a, b in zip(places, [*places[1:], places[0] + 16], strict=True)) == 4


@pytest.mark.parametrize(("count", "kept"), [(16, 5), (23, 7), (24, 12), (36, 16), (41, 30)])
def test_the_gaps_between_layers_that_stay_differ_by_one_at_most(count: int, kept: int) -> None:
    units = {f"layers.{i}": PAGE for i in range(count)}
    resident = allocate(Sizes(units, dict.fromkeys(units, 1.0)), (kept + ROOMY_BLOCKS) * PAGE).resident
    places = [int(name[7:]) for name in resident]
    gaps = {b - a for a, b in zip(places, [*places[1:], places[0] + count], strict=True)}
    assert len(places) == kept
    assert max(gaps) - min(gaps) <= 1


def test_one_huge_head_stays_rather_than_that_the_ring_must_hold_two_of_it() -> None:
    units = {f"layers.{i}": PAGE for i in range(8)} | {"head": 100 * PAGE}
    sizes = Sizes(units, dict.fromkeys(units, 1.0))
    allocation = allocate(sizes, 103 * PAGE)
    assert "head" in allocation.resident
    assert minimum_budget(sizes) == 102 * PAGE


def test_a_third_block_is_worth_a_layer_but_not_what_drafting_uses() -> None:
    units = {f"layers.{i}": 10 * PAGE for i in range(8)} | {"mtp": 10 * PAGE}
    sizes = Sizes(units, dict.fromkeys(units, 1.0) | {"mtp": 3.5})
    tight, roomy = allocate(sizes, 30 * PAGE), allocate(sizes, 50 * PAGE)
    assert tight.resident == ("mtp",)
    assert tight.ring_bytes == RING_BLOCKS * 10 * PAGE
    assert len(roomy.resident) == 2, "and not three"
    assert roomy.ring_bytes == ROOMY_BLOCKS * 10 * PAGE
    assert allocate(sizes, 90 * PAGE).streamed == (), "nothing to hold a block for"
