"""Random numbers are a function of what they are for."""

from __future__ import annotations

import numpy as np

from engine.decoding.randomness import Purpose, uniform
from tests.engine.decoding.chi_squared import deviation


def test_l12_same_key_same_number() -> None:
    assert uniform(7, 100, 2, Purpose.ACCEPT) == uniform(7, 100, 2, Purpose.ACCEPT)


def test_numbers_stay_what_they_are_between_versions() -> None:
    """A trace's seed must mean the same tomorrow."""
    assert [uniform(0, 0, 0, Purpose.DRAFT), uniform(1, 5, 3, Purpose.TARGET)] == [
        0.16526896395580137,
        0.073694513867675,
    ]


def test_numbers_are_uniform_along_every_part_of_the_key() -> None:
    along_seed = [uniform(i, 3, 1, Purpose.DRAFT) for i in range(20_000)]
    along_committed = [uniform(1, i, 1, Purpose.DRAFT) for i in range(20_000)]
    for numbers in (along_seed, along_committed):
        assert min(numbers) >= 0
        assert max(numbers) < 1
        assert abs(deviation(np.histogram(numbers, 64, (0, 1))[0], np.full(64, 1 / 64))) < 4


def test_numbers_of_different_purpose_place_and_round_are_independent() -> None:
    a = np.array([uniform(1, i, 1, Purpose.DRAFT) for i in range(20_000)])
    for other in (
        [uniform(1, i, 1, Purpose.ACCEPT) for i in range(20_000)],
        [uniform(1, i, 2, Purpose.DRAFT) for i in range(20_000)],
        [uniform(2, i, 1, Purpose.DRAFT) for i in range(20_000)],
        [uniform(1, i + 1, 0, Purpose.DRAFT) for i in range(20_000)],  # the same position, drafted a round later
    ):
        cells = np.histogram2d(a, np.array(other), 8, ((0, 1), (0, 1)))[0].ravel()
        assert abs(deviation(cells, np.full(64, 1 / 64))) < 4
