"""Two runs against each other: where they part, and intervals that say what may be chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.runs.compare_view import delta_row
from app.runs.comparison import Delta, compare_runs, newcombe, parting, welch
from engine import Round, Trace, TraceHeader
from tests.app.chat import scripted_records as script
from tests.app.chat.test_cells import draft, one_round, said


def trace(*rounds: Round, **header: object) -> Trace:
    facts = {"draftscope": "1", "created": "2026-01-02T03:04:05+00:00", "model": "demo", "prompt": "Hi"}
    return Trace(TraceHeader(**(facts | header)), rounds)  # type: ignore[arg-type]


def delta(first: Trace, second: Trace, name: str) -> Delta:
    return next(d for d in compare_runs(first, second).deltas if d.name == name)


AB = one_round([draft("a", "accepted")], [said("a", "accepted", token=1), said("b", "bonus", token=2)])
AX = one_round([draft("a", "accepted")], [said("a", "accepted", token=1), said("x", "correction", token=9)])


def test_the_first_token_that_differs_and_its_round_in_each_run() -> None:
    one = [one_round([], [said(t, "model", token=n)]) for t, n in (("a", 1), ("b", 2), ("c", 3))]
    assert parting(trace(AB, AB), trace(AB, AX)) is not None
    found = parting(trace(AB, AB), trace(AB, AX))
    assert found is not None
    assert (found.token, found.rounds) == (3, (1, 1))
    assert parting(trace(AB), trace(*one[:2])) is None, "other rounds, the same tokens"
    longer = parting(trace(AB), trace(*one))
    assert longer is not None
    assert (longer.token, longer.rounds) == (2, (None, 2))


def test_newcombes_published_example() -> None:
    """56 of 70 against 48 of 80: 0.0524 … 0.3339 (Newcombe 1998, method 10)."""
    interval = newcombe((48, 80), (56, 70))
    assert interval == pytest.approx((0.0524, 0.3339), abs=2e-4)
    assert newcombe((0, 0), (1, 2)) is None


def test_welchs_interval_covers_the_true_difference_nineteen_times_of_twenty() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        low, high = welch(generator.normal(1, 2, 60), generator.normal(2, 3, 90)) or (9.0, 9.0)
        covered += low <= 1 <= high
    assert 0.92 < covered / 400 < 0.98


def test_a_faster_run_is_told_from_chance() -> None:
    rounds = script.long_reply(400)
    faster = [replace(r, verify_s=r.verify_s / 3, draft_s=r.draft_s / 3) for r in rounds]
    speed = delta(trace(*rounds), trace(*faster), "Tokens per second")
    assert speed.certain
    assert speed.first is not None
    assert speed.second == pytest.approx(3 * speed.first)
    assert speed.low is not None
    assert speed.high is not None
    assert speed.low < 2 * speed.first < speed.high
    same = delta(trace(*rounds), trace(*rounds), "Tokens per second")
    assert not same.certain
    assert "may be chance" in delta_row(same)[4]


def test_runs_without_rounds_compare_without_figures() -> None:
    assert delta(trace(), trace(AB), "Tokens per second").first is None
    assert delta_row(delta(trace(), trace(AB), "Tokens per second"))[1:4:2] == ("–", "–")
    assert delta_row(delta(trace(), trace(AB), "Drafts accepted, of tested"))[1] == "–", "nothing, and so no per cent"


def test_less_is_written_with_a_minus_sign() -> None:
    assert delta_row(delta(trace(AB, AB), trace(AB), "Rounds"))[3] == "−1"


def test_settings_that_differ_are_named_and_others_are_not() -> None:
    def settings(tokens: int) -> dict[str, object]:
        return {"draft": {"drafter": "mtp", "tokens": tokens, "length": "fixed"}, "sampling": {"temperature": 0.0}}

    found = compare_runs(trace(settings=settings(1)), trace(settings=settings(4), sidecar="mtp.gguf")).settings
    assert [(s.name, s.first, s.second) for s in found] == [
        ("Sidecar", "none", "mtp.gguf"),
        ("Drafter", "MTP, 1", "MTP, 4"),
    ]


def test_replies_to_different_prompts_are_said_to_be() -> None:
    assert not compare_runs(trace(prompt="a"), trace(prompt="b")).same_prompt
    assert compare_runs(trace(prompt_tokens=(1,)), trace(prompt_tokens=(1,))).same_prompt
