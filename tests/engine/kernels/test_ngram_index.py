"""The n-gram index against looking everywhere, while it grows and shrinks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.ngram_index import NgramIndex
from tests.naive.ngrams import longest_match

STEPS = st.lists(st.one_of(st.integers(-6, 3), st.lists(st.integers(0, 3), max_size=8)), min_size=20, max_size=80)


@given(max_ngram=st.integers(2, 6), steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_finds_what_looking_everywhere_finds(max_ngram: int, steps: list[int | list[int]]) -> None:
    """A token is appended, a list extends, a negative number takes back that many."""
    index, tokens = NgramIndex(max_ngram), list[int]()
    for step in steps:
        if isinstance(step, list):
            index.extend(step)
            tokens += step
        elif step >= 0:
            index.append(step)
            tokens.append(step)
        else:
            length = max(0, len(tokens) + step)
            index.truncate(length)
            del tokens[length:]
        assert len(index) == len(tokens)
        assert index.longest_match() == longest_match(tokens, max_ngram)


def test_truncation_leaves_no_trace() -> None:
    """Also across a growth of the tables."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 40, 5000).tolist()
    index = NgramIndex()
    index.extend(tokens)
    index.truncate(1700)
    for token in tokens[1700:3000]:
        index.append(token)
    index.truncate(2100)
    fresh = NgramIndex()
    fresh.extend(tokens)
    fresh.truncate(2100)
    assert index.longest_match() == fresh.longest_match() == longest_match(tokens[:2100], 5)
    np.testing.assert_array_equal(index._tables, fresh._tables)


def test_many_tokens_match_a_dictionary() -> None:
    """Collisions of hashes do happen here; a dictionary has none."""
    rng = np.random.default_rng(1)
    tokens = (rng.integers(0, 300, 30_000) * 800).tolist()
    index, last = NgramIndex(4), dict[tuple[int, ...], int]()
    for at in range(len(tokens)):
        index.append(tokens[at])
        expected = None
        for n in range(2, 5):
            if at + 1 >= n:
                run = tuple(tokens[at + 1 - n : at + 1])
                if run in last:
                    expected = (last[run], n)
                last[run] = at + 1
        assert index.longest_match() == expected


def test_the_most_recent_occurrence_of_the_longest_run_wins() -> None:
    index = NgramIndex()
    index.extend([1, 2, 3, 9, 1, 2, 3, 8, 2, 3, 7, 1, 2, 3])
    assert index.longest_match() == (7, 3)
    assert index.following(7, 3) == [8, 2, 3]
    assert index.following(12, 9) == [2, 3]


def test_a_single_token_is_no_match() -> None:
    index = NgramIndex()
    index.extend([5, 6, 5])
    assert index.longest_match() is None


def test_an_occurrence_may_overlap_the_end() -> None:
    index = NgramIndex()
    index.extend([4, 4, 4, 4])
    assert index.longest_match() == (3, 3)


def test_empty() -> None:
    index = NgramIndex()
    index.extend([])
    index.truncate(0)
    assert len(index) == 0
    assert index.longest_match() is None
    assert index.following(0, 4) == []


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        NgramIndex(1)
    index = NgramIndex()
    index.append(1)
    for length in (-1, 2):
        with pytest.raises(ValueError, match="cannot cut"):
            index.truncate(length)


@pytest.mark.parametrize("count", [1023, 1024, 1025, 100_000])
def test_any_number_at_once(count: int) -> None:
    """A table whose size is no power of two would probe forever."""
    index = NgramIndex()
    index.extend(range(count))
    index.extend([0, 1])
    assert index.longest_match() == (2, 2)
