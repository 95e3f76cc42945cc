"""Rounds as spans of time: one after the other, waiting booked on whoever waited."""

from __future__ import annotations

import pytest

from app.residency.lanes_model import KEPT_ROUNDS, LanesModel, lap_of
from engine import CommittedToken, DiskUse, Round

TOKEN = CommittedToken(1, "a", "model", "model")


def a_round(index: int = 1, draft: float = 0.2, verify: float = 0.8, wait: float = 0.3, read: float = 0.9) -> Round:
    return Round(index, 0, "answer", (), (TOKEN, TOKEN), draft, verify, wait, 500_000_000, disk=DiskUse(read_s=read))


def test_a_round_takes_drafting_and_verifying() -> None:
    lap = lap_of(a_round(), 7, 10.0)
    assert [lap.seconds, lap.end] == pytest.approx([1.0, 11.0])
    assert [lap.verify_s, lap.verify_wait_s] == pytest.approx([0.5, 0.3])


def test_what_verifying_cannot_have_waited_drafting_did() -> None:
    lap = lap_of(a_round(draft=0.5, verify=0.2, wait=0.6), 1, 0.0)
    assert lap.verify_wait_s == pytest.approx(0.2)
    assert lap.draft_wait_s == pytest.approx(0.4)
    assert lap.wait_s == pytest.approx(0.6)


def test_the_disk_lane_ends_with_the_round() -> None:
    assert lap_of(a_round(read=5.0), 1, 0.0).read_s == pytest.approx(1.0)


def test_rounds_follow_each_other_and_the_oldest_go() -> None:
    model = LanesModel()
    model.add_records([a_round(0), *(a_round(i) for i in range(1, KEPT_ROUNDS + 4))])
    assert len(model.laps) == KEPT_ROUNDS
    assert model.laps[-1].number == KEPT_ROUNDS + 3
    assert all(b.begin == pytest.approx(a.end) for a, b in zip(model.laps, model.laps[1:], strict=False))


def test_numbers_go_on_with_the_next_reply() -> None:
    model = LanesModel()
    model.add_records([a_round(1), a_round(2)])
    model.add_records([a_round(1)])
    assert [lap.number for lap in model.laps] == [1, 2, 3]
    model.clear()
    assert model.summary() == "No rounds yet."


def test_the_sentence_tells_speed_and_waiting() -> None:
    model = LanesModel()
    model.add_records([a_round(read=0.5)])
    assert model.summary() == "Round 1: 1.00 s, 2 tokens; 500 MB read at 1.0 GB/s; 0.30 s waited for the disk."
