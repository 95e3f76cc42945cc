"""Plots are drawn as seldom as keeps their share of the time small, whatever a drawing costs here."""

from __future__ import annotations

import pytest

from app.inspector.pace import LONGEST_S, SHARE, Pace


class Clocks:
    """Time and work that go on when the test says so."""

    def __init__(self) -> None:
        self.time = 100.0
        self.work = 5.0

    def draw(self, pace: Pace, cost: float) -> None:
        pace.begin()
        self.time += 2 * cost  # other programs compute too
        self.work += cost
        pace.end()


@pytest.mark.parametrize("cost", [0.001, 0.01, 0.019])
def test_drawing_takes_a_small_share_of_the_time(cost: float) -> None:
    clocks = Clocks()
    pace = Pace(lambda: clocks.time, lambda: clocks.work)
    assert pace.rest_ms() == 0, "the first drawing waits for nothing"
    worked, begun = clocks.work, clocks.time
    for _ in range(40):
        clocks.time += pace.rest_ms() / 1000
        assert pace.rest_ms() == 0
        clocks.draw(pace, cost)
    clocks.time += pace.rest_ms() / 1000
    assert (clocks.work - worked) / (clocks.time - begun) == pytest.approx(SHARE, rel=0.1)


def test_plots_never_stand_still_for_long() -> None:
    clocks = Clocks()
    pace = Pace(lambda: clocks.time, lambda: clocks.work)
    clocks.draw(pace, 0.4)
    assert 0 < pace.rest_ms() <= 1000 * LONGEST_S


def test_at_the_end_nothing_waits_and_then_the_pace_is_kept_again() -> None:
    clocks = Clocks()
    pace = Pace(lambda: clocks.time, lambda: clocks.work)
    clocks.draw(pace, 0.05)
    pace.begin()
    pace.hurry()
    clocks.work += 0.05
    pace.end()
    assert pace.rest_ms() == 0, "a drawing that had begun lacks the last rounds"
    clocks.draw(pace, 0.05)
    assert pace.rest_ms() > 0
