"""A kernel compiles once, for one signature; a team of tasks does each piece of work once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engine.kernels.compiled import Task, kernel, registered
from engine.kernels.team import argument, run, take_number


@kernel("void(float32[::1], float32)", cache=False)
def _scale(x, factor):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        x[i] *= factor


@Task
def _count_up(arguments, _index, _count):  # type: ignore[no-untyped-def]
    number = take_number(arguments)
    while number < argument(arguments, 1):
        take_number(arguments + 8 * (2 + number))  # adds 1 to the counter of this piece of work
        number = take_number(arguments)


def test_a_kernel_is_compiled_for_its_signature_alone() -> None:
    x = np.ones(5, np.float32)
    _scale(x, 2.0)
    assert x.tolist() == [2.0] * 5
    with pytest.raises(TypeError):
        _scale(np.ones(5, np.float64), 2.0)


def test_kernels_are_registered_by_module() -> None:
    names = [item.name for item in registered(__name__)]
    assert names == ["scale", "count_up"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_team_does_every_piece_of_work_once(threads: int) -> None:
    arguments = np.zeros(2 + 1000, np.int64)
    arguments[1] = 1000
    run(_count_up, arguments, threads)
    assert (arguments[2:] == 1).all()


def test_two_threads_may_start_teams_at_once() -> None:
    results = []

    def work() -> None:
        for _ in range(20):
            arguments = np.zeros(2 + 100, np.int64)
            arguments[1] = 100
            run(_count_up, arguments, 2)
            results.append(bool((arguments[2:] == 1).all()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 40
