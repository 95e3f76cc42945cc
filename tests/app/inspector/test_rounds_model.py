"""The numbers behind the plots, checked by counting by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.inspector.rounds_model import FEW, PositionRate, RoundsModel
from engine import DraftedToken, Finished, PrefillProgress, Round, wilson_interval
from tests.app.chat import scripted_records as script
from tests.app.chat.test_cells import draft, one_round, said


def model_of(*rounds: Round) -> RoundsModel:
    model = RoundsModel()
    model.add_records(rounds)
    return model


ALL = one_round(
    [draft("a", "accepted"), draft("b", "accepted")], [said("a", "accepted"), said("b", "accepted"), said("c", "bonus")]
)
HALF = one_round([draft("a", "accepted"), draft("b", "rejected")], [said("a", "accepted"), said("x", "correction")])
NONE = one_round([draft("a", "rejected"), draft("b", "unused")], [said("x", "correction")])
COPIED = one_round([draft("a", "accepted", "ngram")], [said("a", "accepted", "ngram"), said("b", "bonus")])
PLAIN = one_round([], [said("x", "model")])


def counts(rates: list[PositionRate]) -> list[tuple[int, int, int]]:
    return [(r.position, r.accepted, r.tests) for r in rates]


def test_conditional_counts_tested_drafts_survival_all_proposed() -> None:
    model = model_of(ALL, HALF, NONE, PLAIN)
    assert counts(model.positions("conditional")) == [(1, 2, 3), (2, 1, 2)]
    assert counts(model.positions("survival")) == [(1, 2, 3), (2, 1, 3)]


def test_sources_are_counted_apart() -> None:
    model = model_of(ALL, COPIED)
    assert counts(model.positions(source="ngram")) == [(1, 1, 1)]
    assert counts(model.positions(source="mtp")) == [(1, 1, 1), (2, 1, 1)]
    assert counts(model.positions()) == [(1, 2, 2), (2, 1, 1)]


def test_intervals_are_wilsons_and_few_is_said() -> None:
    model = model_of(*[ALL] * 15, *[HALF] * (FEW - 15))
    first, second = model.positions()
    assert (second.low, second.high) == wilson_interval(15, FEW)
    assert (second.share, second.few) == (0.75, False)
    assert not first.few
    assert model_of(*[ALL] * (FEW - 1)).positions()[0].few


def test_headline() -> None:
    headline = model_of(ALL, HALF, NONE, PLAIN).headline()
    assert headline.rounds == 4
    assert headline.tokens_per_round == pytest.approx(7 / 4)
    assert headline.acceptance == pytest.approx(3 / 5)
    assert headline.tokens_per_s == pytest.approx(7 / 0.012)
    empty = RoundsModel().headline()
    assert (empty.rounds, empty.tokens_per_round, empty.acceptance, empty.tokens_per_s) == (0, None, None, None)


@pytest.mark.parametrize(
    ("draft_s", "verify_s", "wait_s", "parts"),
    [(0.01, 0.03, 0.0, (10, 30, 0)), (0.01, 0.03, 0.02, (10, 10, 20)), (0.01, 0.03, 0.035, (5, 0, 35))],
)
def test_the_parts_of_a_round_add_up_to_its_time(
    draft_s: float, verify_s: float, wait_s: float, parts: tuple[float, float, float]
) -> None:
    window = model_of(Round(1, 0, "answer", (), (), draft_s, verify_s, wait_s)).window()
    seen = (window.draft_ms[0], window.verify_ms[0], window.wait_ms[0])
    assert seen == pytest.approx(parts)
    assert sum(seen) == pytest.approx(1e3 * (draft_s + verify_s))


def test_the_window_holds_the_newest_rounds_with_their_numbers() -> None:
    model = RoundsModel()
    rounds = script.long_reply(400)
    model.add_records(rounds)
    window = model.window(30)
    assert window.number.tolist() == list(range(len(rounds) - 29, len(rounds) + 1))
    assert window.accepted.tolist() == [sum(d.verdict == "accepted" for d in r.drafts) for r in rounds[-30:]]
    assert len(model.window(10**6).number) == len(rounds)
    earlier = model.window(30, last=40)
    assert earlier.number.tolist() == list(range(11, 41))
    assert earlier.accepted.tolist() == [sum(d.verdict == "accepted" for d in r.drafts) for r in rounds[10:40]]


def test_the_window_is_a_copy() -> None:
    model = model_of(ALL)
    window = model.window()
    model.add_records([PLAIN])
    assert window.offered.tolist() == [2]


def test_the_prompts_own_token_is_no_round() -> None:
    """It came from reading the prompt, so it must not thin out tokens per round."""
    first = Round(0, 0, "answer", (), (said("x", "model"),), 0.0, 0.0)
    model = model_of(first, ALL)
    assert model.headline() == model_of(ALL).headline()
    assert model.window().number.tolist() == [1]


def test_the_headline_says_the_same_as_the_engine() -> None:
    records = script.reply(thinking=script.THINKING)
    model = RoundsModel()
    model.add_records(records)
    headline, finished = model.headline(), records[-1]
    assert isinstance(finished, Finished)
    assert headline.rounds == finished.stats.rounds
    assert headline.tokens_per_round == pytest.approx(finished.stats.tokens_per_round)
    assert headline.acceptance == pytest.approx(finished.stats.acceptance)
    assert headline.tokens_per_s == pytest.approx(finished.stats.tokens_per_s)
    seen = [(r.tests, r.accepted) for r in model.positions()]
    assert seen == [(c.tried, c.accepted) for c in finished.stats.per_position]


def test_version_grows_only_with_rounds() -> None:
    model = RoundsModel()
    model.add_records([PrefillProgress(1, 2)])
    assert model.version == 0
    model.add_records([ALL])
    changed = model.version
    assert changed > 0
    model.clear()
    assert model.version > changed
    assert model.positions() == []
    assert model.rounds == 0


def test_phases_are_counted_apart() -> None:
    thinking = replace(ALL, phase="think")
    model = model_of(thinking, HALF)
    assert counts(model.positions(phase="think")) == [(1, 1, 1), (2, 1, 1)]
    assert counts(model.positions(phase="answer")) == [(1, 1, 1), (2, 0, 1)]


def test_calibration_bins_what_the_drafter_claimed() -> None:
    def claimed(probability: float, verdict: str) -> DraftedToken:
        return replace(draft("a", verdict), draft_probability=probability)

    sure = one_round([claimed(0.95, "accepted"), claimed(1.0, "accepted")], [said("c", "bonus")])
    unsure = one_round([claimed(0.15, "rejected"), claimed(0.15, "unused")], [said("x", "correction")])
    low, high = model_of(sure, unsure, COPIED).calibration()
    assert (low.claimed, low.rate.accepted, low.rate.tests) == (pytest.approx(0.15), 0, 1)
    assert (high.claimed, high.rate.accepted, high.rate.tests) == (pytest.approx(0.975), 2, 2)


def test_costs_add_up_over_rounds() -> None:
    costs = model_of(Round(1, 0, "answer", (), (), 0.01, 0.03, 0.02), Round(2, 0, "answer", (), (), 0.02, 0.01)).costs()
    assert (costs.draft_s, costs.verify_s, costs.wait_s) == pytest.approx((0.03, 0.02, 0.02))
    assert costs.total_s == pytest.approx(0.07)


def test_a_round_is_found_again_by_identity() -> None:
    model = model_of(ALL, HALF)
    assert model.number_of(HALF) == 2
    assert model.number_of(replace(HALF)) is None
