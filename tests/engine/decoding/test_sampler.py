"""The sampler against its slow and obvious twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.randomness import Purpose
from engine.decoding.sampler import Sampler
from engine.errors import NumericsError
from engine.options import SamplingOptions
from tests.engine.decoding import naive_sampling
from tests.engine.decoding.chi_squared import deviation

OPTIONS = st.builds(
    SamplingOptions,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    top_k=st.sampled_from([0, 1, 5, 40]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.05, 0.5]),
    repetition_penalty=st.sampled_from([1.0, 1.3, 0.8]),
    presence_penalty=st.sampled_from([0.0, 1.5]),
    frequency_penalty=st.sampled_from([0.0, 0.4]),
    logit_bias=st.dictionaries(st.integers(0, 29), st.floats(-5, 5, width=32), max_size=3),
)


def random_logits(seed: int, count: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, count).astype(np.float32)


def dense(sampler: Sampler, logits: np.ndarray, ahead: tuple[int, ...] = ()) -> np.ndarray:
    return sampler.row(logits, ahead).distribution.at(np.arange(len(logits)))


@settings(max_examples=300, deadline=None)
@given(OPTIONS, st.integers(0, 999), st.lists(st.integers(0, 29), max_size=6), st.lists(st.integers(0, 29), max_size=6))
def test_o28_distribution_is_that_of_the_oracle(
    options: SamplingOptions, seed: int, prompt: list[int], reply: list[int]
) -> None:
    logits = random_logits(seed)
    sampler = Sampler(options, prompt)
    sampler.commit(reply[:3])
    row = sampler.row(logits, ahead=reply[3:])
    expected = naive_sampling.distribution(logits, options, prompt, reply)
    if options.greedy:
        assert row.draw(Purpose.TARGET) == int(np.argmax(expected))
    else:
        assert row.distribution.at(np.arange(30)) == pytest.approx(expected, abs=1e-6)
        assert np.all(np.diff(row.distribution.ids) > 0)


def test_order_of_operations_top_p_is_of_what_top_k_left() -> None:
    """Hugging Face's order: 0.4 / 0.7 > 0.5, so that one token is enough once top-k took the tail."""
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1], np.float32))
    assert dense(Sampler(SamplingOptions(1.0, top_k=2, top_p=0.5)), logits).tolist() == [1, 0, 0, 0]
    assert np.count_nonzero(dense(Sampler(SamplingOptions(1.0, top_p=0.5)), logits)) == 2


def test_top_p_over_a_large_vocabulary_needs_no_full_sort() -> None:
    logits = random_logits(5, 20_000)
    for top_p in (0.1, 0.9, 0.999, 0.9999999):
        options = SamplingOptions(1.0, top_p=top_p)
        expected = naive_sampling.distribution(logits, options)
        assert dense(Sampler(options), logits) == pytest.approx(expected, abs=1e-6)


def test_top_p_ties_go_to_the_lower_id_in_a_wide_set_too() -> None:
    """1024 tokens of 2^-11 each, in one bin, behind one that is more likely than all of them together."""
    logits = np.zeros(1025, np.float32)
    logits[700] = np.log(np.float32(1024))
    kept = np.flatnonzero(dense(Sampler(SamplingOptions(1.0, top_p=0.7499)), logits)).tolist()
    assert kept == [*range(512), 700]


@pytest.mark.parametrize("options", [SamplingOptions(1.0), SamplingOptions(1.0, top_p=0.97)], ids=["all", "top-p"])
def test_o28_over_a_large_vocabulary_draws_follow_the_distribution(options: SamplingOptions) -> None:
    logits = random_logits(6, 5_000)
    sampler = Sampler(options)
    counts = np.zeros(5_000, np.int64)
    row = sampler.row(logits)
    for _ in range(20_000):
        sampler.commit((0,))
        counts[row.draw(Purpose.TARGET)] += 1
    assert deviation(counts, naive_sampling.distribution(logits, options)) < 4


def test_top_k_ties_go_to_the_lower_id() -> None:
    logits = np.array([1, 2, 2, 2, 0], np.float32)
    assert np.flatnonzero(dense(Sampler(SamplingOptions(1.0, top_k=2)), logits)).tolist() == [1, 2]


def test_l02_greedy_is_the_first_maximum() -> None:
    assert Sampler(SamplingOptions()).row(np.array([0, 5, 5, 5], np.float32)).best == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_l02_never_a_choice_from_numbers_that_are_not_finite(bad: float) -> None:
    sampler = Sampler(SamplingOptions(), prompt=[0, 1])
    with pytest.raises(NumericsError, match=r"position 2 are not finite.*model file may be damaged"):
        sampler.row(np.array([0, bad, 1], np.float32))


def test_penalties_count_drafts_ahead_only_while_a_row_is_looked_at() -> None:
    sampler = Sampler(SamplingOptions(presence_penalty=3.0))
    logits = np.array([0, 2, 1], np.float32)
    assert sampler.row(logits, ahead=(1,)).best == 2
    assert sampler.row(logits).best == 1
    sampler.commit([1])
    assert sampler.row(logits).best == 2


def test_repetition_penalty_sees_the_prompt_the_others_do_not() -> None:
    logits = np.array([0, 2, 1.5], np.float32)
    assert Sampler(SamplingOptions(repetition_penalty=2.0), prompt=[1]).row(logits).best == 2
    assert Sampler(SamplingOptions(presence_penalty=5.0, frequency_penalty=5.0), prompt=[1]).row(logits).best == 1


def test_penalised_logits_are_a_copy() -> None:
    logits = np.array([0, 2, 1], np.float32)
    assert Sampler(SamplingOptions(logit_bias={0: 9.0})).row(logits).best == 0
    assert logits.tolist() == [0, 2, 1]


def test_rows_of_a_trimmed_head_speak_of_token_ids() -> None:
    ids = np.array([2, 5, 11])
    options = SamplingOptions(1.0, presence_penalty=4.0, logit_bias={5: 1.0, 7: 3.0})
    sampler = Sampler(options)
    sampler.commit([11, 7])
    logits = np.array([0.5, 0.0, 4.0], np.float32)
    row = sampler.row(logits, ids=ids)
    expected = np.exp([0.5, 1.0, 0.0])
    assert row.best == 5
    assert row.distribution.ids.tolist() == [2, 5, 11]
    assert row.distribution.probabilities == pytest.approx(expected / expected.sum())


def test_greedy_shows_probabilities_of_the_raw_logits_at_temperature_1() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2], np.float32)) + 7
    row = Sampler(SamplingOptions(logit_bias={2: 10.0}), alternatives=2).row(logits)
    assert row.best == 2
    assert row.probability(2) == pytest.approx(0.2)
    assert row.alternatives() == ((0, pytest.approx(0.5)), (1, pytest.approx(0.3)))


def test_sampling_shows_probabilities_of_what_is_sampled_from() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    row = Sampler(SamplingOptions(1.0, top_k=2), alternatives=3).row(logits)
    assert row.probability(0) == pytest.approx(0.625)
    assert row.probability(2) == 0
    assert [token for token, _ in row.alternatives()] == [0, 1]


def test_l12_draws_depend_on_seed_and_place_alone() -> None:
    logits = random_logits(1)
    first, again = (Sampler(SamplingOptions(1.0, seed=3), prompt=[1, 2]) for _ in range(2))
    again.row(logits).draw(Purpose.TARGET)  # what was drawn before changes nothing
    assert first.row(logits, (4,)).draw(Purpose.TARGET) == again.row(logits, (4,)).draw(Purpose.TARGET)
    draws = {Sampler(SamplingOptions(1.0, seed=s)).row(logits).draw(Purpose.TARGET) for s in range(50)}
    assert len(draws) > 3
