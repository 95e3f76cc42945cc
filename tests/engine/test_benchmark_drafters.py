"""What each drafter is worth on the demo checkpoint, by counts of passes: these are the same on every machine."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from engine.benchmark_drafters import DRAFT_TOKENS, TASKS, measure_drafters


@pytest.fixture(scope="module")
def tasks(demo: engine.Model) -> dict[str, Any]:
    said: list[str] = []
    result = measure_drafters(demo, 1, engine.CancelToken(), said.append)
    assert len(said) == len(TASKS)
    return result["drafters"]


@pytest.mark.parametrize("task", TASKS)
def test_every_drafter_says_the_same(tasks: dict[str, Any], task: str) -> None:
    assert len({own["tokens"] for own in tasks[task].values()}) == 1
    plain = tasks[task]["none"]
    assert plain["tokens_per_round"] == 1
    assert plain["speed_up"] == 1
    assert (plain["draft_passes"], plain["acceptance"]) == (0, [])


def test_both_together_cost_no_more_than_3_percent_against_mtp_alone_on_prose(tasks: dict[str, Any]) -> None:
    both, mtp = tasks["prose"]["mtp+ngram"], tasks["prose"]["mtp"]
    assert both["rounds"] <= 1.03 * mtp["rounds"]
    assert both["draft_passes"] <= 1.03 * mtp["draft_passes"]
    assert mtp["tokens_per_round"] > 2


def test_both_together_win_clearly_on_copying(tasks: dict[str, Any]) -> None:
    both, mtp, ngram = (tasks["copy"][name] for name in ("mtp+ngram", "mtp", "ngram"))
    assert both["rounds"] <= 0.95 * mtp["rounds"]
    assert both["rounds"] <= 0.9 * ngram["rounds"]
    assert both["draft_passes"] <= 0.5 * mtp["draft_passes"]


def test_acceptance_is_given_by_position(tasks: dict[str, Any]) -> None:
    shares = tasks["prose"]["mtp"]["acceptance"]
    assert len(shares) == DRAFT_TOKENS
    assert shares[0] > 0.7
    assert all(0 < share <= 1 for share in shares)


def test_a_model_without_a_draft_layer_has_lookup_only(demo: engine.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr(demo, "info", replace(demo.info, mtp="none"))
    monkeypatch.setattr("engine.benchmark_drafters.TASKS", {"chat": ("hi",)})
    result = measure_drafters(demo, 1, engine.CancelToken())
    assert set(result["drafters"]["chat"]) == {"none", "ngram"}


def test_cancel(demo: engine.Model) -> None:
    cancel = engine.CancelToken()
    cancel.cancel()
    with pytest.raises(engine.Cancelled):
        measure_drafters(demo, 1, cancel)
