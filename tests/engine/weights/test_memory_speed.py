"""The measurement is bounded and gives a figure that a memory can have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engine.weights import memory_speed
from engine.weights.memory_speed import measure_memory_speed


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_a_figure_that_a_memory_can_have(threads: int) -> None:
    assert 1e8 < measure_memory_speed(threads) < 1e13


def test_little_is_taken_where_little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    made = np.ones

    def ones(count: int) -> np.ndarray:
        taken.append(8 * count)
        return made(count)

    monkeypatch.setattr(memory_speed.np, "ones", ones)
    monkeypatch.setattr(memory_speed.psutil, "virtual_memory", lambda: SimpleNamespace(available=80_000_000))
    assert measure_memory_speed(4) > 0
    assert 0 < sum(taken) <= 10_000_000
    monkeypatch.setattr(memory_speed.psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    assert measure_memory_speed(1) > 0
