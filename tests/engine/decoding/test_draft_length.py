"""How many tokens to draft: fixed, adaptive, and by measured costs."""

from __future__ import annotations

import numpy as np
import pytest

from engine.decoding.cost_aware import CostAwareLength
from engine.decoding.costs import RoundOutcome
from engine.decoding.draft_length import AdaptiveLength, FixedLength, LengthPolicy, length_policy
from engine.decoding.records import Phase
from engine.options import DraftOptions
from tests.engine.decoding.simulator import Costs, Machine, best_rate, rate


def outcome(drafted: int, accepted: int, tested: int | None = None, phase: Phase = "answer") -> RoundOutcome:
    tested = min(accepted + 1, drafted) if tested is None else tested
    return RoundOutcome(phase, drafted, tested, accepted, 0.01 * drafted, 1.0)


def test_o31_options_name_the_policy() -> None:
    assert isinstance(length_policy(DraftOptions("mtp", 3, "fixed")), FixedLength)
    assert isinstance(length_policy(DraftOptions("mtp", 3, "adaptive")), AdaptiveLength)
    assert isinstance(length_policy(DraftOptions("mtp", 3, "cost-aware")), CostAwareLength)
    assert all(length_policy(DraftOptions("mtp", n)).choose("answer") == n for n in range(15))


@pytest.mark.parametrize("options", [DraftOptions("none", 3, "adaptive"), DraftOptions("mtp", 0, "cost-aware")])
def test_l05_no_drafter_or_length_0_is_plain_decoding(options: DraftOptions) -> None:
    policy = length_policy(options)
    policy.observe(outcome(0, 0))
    assert policy.choose("answer") == 0


def adapted(policy: LengthPolicy, *outcomes: RoundOutcome) -> int:
    for seen in outcomes:
        policy.observe(seen)
    return policy.choose("answer")


def test_o31_adaptive_one_more_after_full_acceptance_one_less_after_none() -> None:
    assert adapted(AdaptiveLength(3), outcome(3, 3)) == 4
    assert adapted(AdaptiveLength(3), outcome(3, 0)) == 2
    assert adapted(AdaptiveLength(3), outcome(3, 1), outcome(3, 2)) == 3


def test_o31_adaptive_stays_between_1_and_14() -> None:
    assert adapted(AdaptiveLength(1), outcome(1, 0)) == 1
    assert adapted(AdaptiveLength(14), outcome(14, 14)) == 14


def test_adaptive_learns_nothing_from_a_drafter_with_less_to_offer() -> None:
    assert adapted(AdaptiveLength(3), outcome(0, 0), outcome(2, 2)) == 3


def test_o33_a_stop_inside_an_accepted_run_is_no_refusal() -> None:
    """Two of three were judged, both accepted, the second ended the reply."""
    policy = CostAwareLength(3)
    before = list(policy._acceptance["answer"].survival)
    policy.observe(outcome(3, 2, tested=2))
    assert all(after > was for after, was in zip(policy._acceptance["answer"].survival[1:], before[1:], strict=True))
    assert adapted(AdaptiveLength(3), outcome(3, 0, tested=0)) == 3


# ---- cost-aware, on machines on paper


def flat(length: int) -> float:
    return 1.0


def proportional(length: int) -> float:
    return 1.0 + length


def slope(length: int) -> float:
    return 1.0 + 0.25 * length


def staircase(length: int) -> float:
    """Reported for 1, 2, 9 and 13 rows: 67, 70, 262, 331 ms."""
    rows = length + 1
    return 0.067 if rows == 1 else 0.070 if rows == 2 else 0.14 if rows <= 4 else 0.2 if rows <= 8 else 0.3


def late_step(length: int) -> float:
    return 1.0 if length <= 3 else 1.05 if length <= 7 else 3.0


MACHINES = {
    "flat": (flat, 0.02),
    "flat, dear drafts": (flat, 0.1),
    "proportional": (proportional, 0.05),
    "slope": (slope, 0.05),
    "staircase": (staircase, 0.005),
    "late step": (late_step, 0.03),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.7, 0.85, 0.95])
def test_o32_within_5_percent_of_the_best_fixed_length(machine: str, share: float) -> None:
    costs, step = MACHINES[machine]
    acceptance = [share] * 14
    earned = Machine(CostAwareLength(), seed=1).run(2500, costs, step, acceptance)
    assert earned >= 0.95 * best_rate(costs, step, acceptance)


@pytest.mark.parametrize("machine", MACHINES)
def test_o32_within_3_percent_of_plain_when_drafting_never_pays(machine: str) -> None:
    costs, step = MACHINES[machine]
    earned = Machine(CostAwareLength(), seed=2).run(2000, costs, step, [0.0] * 14)
    assert earned >= 0.97 * rate(costs, step, [], 0)


def test_o32_acceptance_that_falls_with_position() -> None:
    acceptance = [0.9, 0.8, 0.5, 0.2] + [0.1] * 10
    earned = Machine(CostAwareLength(), seed=3).run(2500, slope, 0.02, acceptance)
    assert earned >= 0.95 * best_rate(slope, 0.02, acceptance)


def test_o32_flat_verification_drafts_long_and_proportional_short() -> None:
    long, short = Machine(CostAwareLength()), Machine(CostAwareLength())
    long.run(1500, flat, 0.01, [0.8] * 14)
    short.run(1500, proportional, 0.01, [0.8] * 14)
    assert np.median(long.lengths[-100:]) >= 6
    assert np.median(short.lengths[-100:]) <= 1


@pytest.mark.parametrize(("before", "after"), [(flat, proportional), (proportional, flat), (staircase, late_step)])
def test_o32_costs_that_shift_are_followed(before: Costs, after: Costs) -> None:
    acceptance = [0.8] * 14
    machine = Machine(CostAwareLength(), seed=4)
    machine.run(1500, before, 0.02, acceptance)
    machine.run(500, after, 0.02, acceptance)
    assert machine.run(1500, after, 0.02, acceptance) >= 0.95 * best_rate(after, 0.02, acceptance)


@pytest.mark.parametrize(("before", "after"), [(0.95, 0.0), (0.0, 0.9)])
def test_o32_acceptance_that_shifts_is_followed(before: float, after: float) -> None:
    machine = Machine(CostAwareLength(), seed=5)
    machine.run(1500, slope, 0.05, [before] * 14)
    machine.run(600, slope, 0.05, [after] * 14)
    assert machine.run(1500, slope, 0.05, [after] * 14) >= 0.95 * best_rate(slope, 0.05, [after] * 14)


def test_o32_a_cold_first_pass_does_not_condemn_a_length() -> None:
    """The very first rounds meet cold pages and take ten times as long."""
    policy = CostAwareLength(3)
    for _ in range(2):
        policy.observe(RoundOutcome("answer", 3, 3, 3, 0.3, 10.0))
    assert Machine(policy, seed=6).run(2000, flat, 0.02, [0.8] * 14) >= 0.95 * best_rate(flat, 0.02, [0.8] * 14)


def test_o32_thinking_and_answering_are_counted_apart() -> None:
    machine = Machine(CostAwareLength(), seed=7)
    for _ in range(4):
        machine.run(400, slope, 0.05, [0.95] * 14, "think")
        machine.run(400, slope, 0.05, [0.05] * 14, "answer")
    think = machine.run(400, slope, 0.05, [0.95] * 14, "think")
    answer = machine.run(400, slope, 0.05, [0.05] * 14, "answer")
    assert think >= 0.95 * best_rate(slope, 0.05, [0.95] * 14)
    assert answer >= 0.95 * best_rate(slope, 0.05, [0.05] * 14)


def test_o32_probes_take_a_bounded_share_of_rounds() -> None:
    machine = Machine(CostAwareLength(), seed=8)
    machine.run(2000, proportional, 0.05, [0.1] * 14)
    probes = sum(length > 0 for length in machine.lengths)
    assert 5 <= probes <= 0.04 * len(machine.lengths)
