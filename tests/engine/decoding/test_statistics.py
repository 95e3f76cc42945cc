"""A reply in numbers."""

from __future__ import annotations

import pytest

from engine.decoding.records import CommittedToken, DraftedToken, Phase, PositionCount, Round
from engine.decoding.statistics import acceptance_by_position, stats_of, wilson_interval


def record(index: int, verdicts: str, phase: Phase = "answer", **keywords: float) -> Round:
    """`verdicts`: a(ccepted), r(ejected), u(nused)."""
    names = {"a": "accepted", "r": "rejected", "u": "unused"}
    drafts = tuple(DraftedToken(1, "x", "mtp", 0.5, 0.5, names[v]) for v in verdicts)  # type: ignore[arg-type]
    committed = (CommittedToken(1, "x", "model", "model"),) * (verdicts.count("a") + 1)
    return Round(index, 0, phase, drafts, committed, keywords.get("draft_s", 0.1), keywords.get("verify_s", 0.4))


ROUNDS = [
    Round(0, 0, "think", (), (CommittedToken(1, "x", "model", "model"),), 0.0, 0.0),
    record(1, "aar", "think"),
    record(2, "ruu", "think"),
    record(3, "aaa"),
    record(4, ""),
]


def test_o34_everything_is_counted() -> None:
    stats = stats_of(ROUNDS, "length")
    assert (stats.rounds, stats.drafted, stats.tested, stats.accepted, stats.emitted) == (4, 9, 7, 5, 10)
    assert stats.accepted_histogram == (2, 0, 1, 1)
    assert stats.per_position == (PositionCount(3, 2), PositionCount(2, 2), PositionCount(2, 1))
    assert stats.acceptance == pytest.approx(5 / 7)
    assert stats.tokens_per_round == pytest.approx(9 / 4)
    assert stats.tokens_per_s == pytest.approx(9 / 2.0)
    assert (stats.draft_s, stats.verify_s) == (pytest.approx(0.4), pytest.approx(1.6))
    assert stats.stop_reason == "length"


def test_o34_per_phase() -> None:
    assert stats_of(ROUNDS, phase="think").accepted == 2
    assert stats_of(ROUNDS, phase="answer").accepted == 3
    assert stats_of(ROUNDS, phase="think").emitted + stats_of(ROUNDS, phase="answer").emitted == 10


def test_nothing_tested_has_no_acceptance() -> None:
    assert stats_of([record(1, "")]).acceptance is None
    assert stats_of([]).tokens_per_round == 0


def test_wilson_interval() -> None:
    """Worked by hand for z = 2, n = 4, x = 2: centre ½, half-width ½ √½."""
    low, high = wilson_interval(2, 4, z=2.0)
    assert (low, high) == (pytest.approx(0.5 - 0.5 / 2**0.5), pytest.approx(0.5 + 0.5 / 2**0.5))
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(0, 10)[0] == 0.0
    assert wilson_interval(10, 10)[1] == pytest.approx(1.0)
    low, high = wilson_interval(80, 100)
    assert 0.71 < low < 0.8 < high < 0.87


def test_acceptance_by_position_is_conditional_and_survival_its_product() -> None:
    one, two = acceptance_by_position([PositionCount(10, 8), PositionCount(8, 4), PositionCount(0, 0)])
    assert (one.position, one.share, one.survival) == (1, 0.8, 0.8)
    assert (two.position, two.share, two.survival) == (2, 0.5, 0.4)
    assert two.low < 0.5 < two.high
