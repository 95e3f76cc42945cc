"""Distributions are exactly what is sampled from."""

from __future__ import annotations

import numpy as np
import pytest

from engine.decoding.distribution import Distribution
from tests.engine.decoding.chi_squared import deviation


def make(pairs: dict[int, float]) -> Distribution:
    ids = sorted(pairs)
    return Distribution(np.array(ids, np.int64), np.array([pairs[i] for i in ids]))


def test_o28_probability_of_a_token() -> None:
    p = make({3: 0.5, 7: 0.25, 9: 0.25})
    assert [p.probability(i) for i in (0, 3, 5, 7, 9, 10)] == [0, 0.5, 0, 0.25, 0.25, 0]
    assert p.at(np.array([0, 3, 8, 9, 100])).tolist() == [0, 0.5, 0, 0.25, 0]


def test_o28_sample_takes_the_place_of_the_uniform_in_the_cumulative() -> None:
    p = make({3: 0.5, 7: 0.25, 9: 0.25})
    assert [p.sample(u) for u in (0.0, 0.499, 0.5, 0.749, 0.75, 1 - 2**-53)] == [3, 3, 7, 7, 9, 9]


def test_a_token_of_probability_0_is_never_drawn() -> None:
    p = make({1: 0.0, 3: 0.5, 5: 0.0, 7: 0.5, 9: 0.0})
    assert {p.sample(u) for u in (0.0, 0.25, 0.5, 0.75, 1 - 2**-53, 1.0)} == {3, 7}


def test_o28_samples_follow_the_probabilities() -> None:
    p = make({0: 0.1, 1: 0.2, 5: 0.3, 6: 0.4})
    uniforms = np.random.default_rng(1).random(40_000)
    counts = np.bincount([p.sample(u) for u in uniforms], minlength=7)
    assert deviation(counts, p.at(np.arange(7))) < 4


def test_o29_residual_is_what_the_target_has_beyond_the_draft() -> None:
    p, q = make({0: 0.5, 1: 0.3, 2: 0.2}), make({0: 0.8, 1: 0.1, 9: 0.1})
    rest = p.residual(q, token=0)
    assert rest.ids.tolist() == [1, 2]
    assert rest.probabilities == pytest.approx([0.5, 0.5])


def test_o29_residual_of_a_certain_draft_is_the_target_without_it() -> None:
    rest = make({0: 0.5, 1: 0.3, 2: 0.2}).residual(None, token=1)
    assert rest.ids.tolist() == [0, 2]
    assert rest.probabilities == pytest.approx([5 / 7, 2 / 7])


def test_o29_empty_residual_falls_back_to_the_target() -> None:
    p = make({0: 0.5, 1: 0.5})
    assert p.residual(make({0: 0.5, 1: 0.5}), token=0) is p
    assert make({4: 1.0}).residual(None, token=4).sample(0.3) == 4


def test_top_is_descending_with_ties_to_the_lower_id() -> None:
    assert make({0: 0.2, 1: 0.3, 2: 0.2, 3: 0.3}).top(3) == ((1, 0.3), (3, 0.3), (0, 0.2))


@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_o28_sample_over_many_tokens_is_that_of_the_cumulative(zeros: float) -> None:
    """Sums are kept by blocks; what is found is what one long sum finds, and never a token that cannot come."""
    random = np.random.default_rng(3)
    weights = np.where(random.random(5_000) < zeros, 0.0, random.random(5_000))
    weights[3_000:4_500] = 0.0
    p = Distribution(np.arange(5_000), weights / weights.sum())
    cumulative = np.cumsum(p.probabilities)
    for uniform in [0.0, *random.random(2_000), 1 - 2.0**-53]:
        token = p.sample(uniform)
        assert p.probabilities[token] > 0
        assert cumulative[token] - p.probabilities[token] - 1e-12 <= uniform <= cumulative[token] + 1e-12
