"""Selections over a row of logits against sorting everything; ties, NaN and empty rows included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.logits import all_finite, argmax, log_sum_exp, softmax, top_k
from engine.kernels.router import route
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import functions, selection

# Few different values, so that there are ties; every kind of number.
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.0, -1.0, 3.5, np.inf, -np.inf, np.nan])
ROWS = st.lists(NUMBERS, max_size=70).map(lambda numbers: np.array(numbers, np.float32))


@given(ROWS)
@settings(max_examples=300, deadline=None)
def test_argmax_is_the_first_largest_number(row: np.ndarray) -> None:
    assert argmax(row) == selection.argmax(row)


@pytest.mark.parametrize("where", [0, 15, 16, 1023, 1024, 5000, 248_319])
def test_argmax_in_a_long_row(where: int) -> None:
    row = normal(np.random.default_rng(where), 248_320)
    row[where] = row[-1] = 100.0
    assert argmax(row) == where


def test_argmax_of_nothing() -> None:
    assert argmax(np.empty(0, np.float32)) == -1
    assert argmax(np.full(40, np.nan, np.float32)) == -1
    assert argmax(np.array([np.nan, -np.inf, -np.inf], np.float32)) == 1


@given(ROWS, st.integers(0, 80))
@settings(max_examples=300, deadline=None)
def test_top_k_is_the_head_of_the_ranking(row: np.ndarray, k: int) -> None:
    ids, values = top_k(row, k)
    assert ids.tolist() == selection.ranking(row)[:k]
    assert same_bits(values, row[ids])


@pytest.mark.parametrize("k", [1, 20, 255, 256, 257, 5000, 248_320])
def test_top_k_of_a_long_row_with_ties(k: int) -> None:
    row = np.round(normal(np.random.default_rng(k), 248_320) * 50) / 50
    row[::1001] = np.nan
    order = np.argsort(np.where(np.isnan(row), np.inf, -row), kind="stable")[: min(k, int((~np.isnan(row)).sum()))]
    ids, values = top_k(row, k)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(values, row[order])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, 16, 100])
def test_all_finite_finds_every_place(bad: float, size: int) -> None:
    for at in range(size):
        row = np.full(size, 3e38, np.float32)
        assert all_finite(row)
        row[at] = bad
        assert not all_finite(row)


def test_all_finite_of_nothing() -> None:
    assert all_finite(np.empty(0, np.float32))


@pytest.mark.parametrize("size", [1, 16, 1025, 248_320])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
def test_softmax_and_log_sum_exp(size: int, temperature: float) -> None:
    row = normal(np.random.default_rng(size), size, scale=5)
    out = np.empty_like(row)
    softmax(row, out, temperature)
    scaled = row.astype(np.float64) / np.float32(temperature)
    np.testing.assert_allclose(out, functions.softmax(scaled), rtol=1e-5, atol=1e-30)
    exact = scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())
    assert log_sum_exp(row, temperature) == pytest.approx(exact, rel=1e-6)


def test_softmax_in_place() -> None:
    row = normal(np.random.default_rng(3), 100)
    out = np.empty_like(row)
    softmax(row, out, 1.0)
    softmax(row, row, 1.0)
    assert same_bits(row, out)


# ---- experts ----


@pytest.mark.parametrize(("experts", "k"), [(1, 1), (8, 2), (61, 7), (256, 8), (16, 16)])
def test_route_equals_the_formula(experts: int, k: int) -> None:
    logits = normal(np.random.default_rng(experts), 9, experts, scale=3)
    ids, weights = np.empty((9, k), np.int64), np.empty((9, k), np.float32)
    route(logits, k, ids, weights)
    expected_ids, expected_weights = selection.route(logits, k)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-5)
    one_ids, one_weights = np.empty((1, k), np.int64), np.empty((1, k), np.float32)
    route(logits[4:5], k, one_ids, one_weights)
    assert same_bits(one_weights, weights[4:5])


def test_route_gives_ties_to_the_lower_id() -> None:
    ids, weights = np.empty((1, 3), np.int64), np.empty((1, 3), np.float32)
    route(np.array([[1, 2, 1, 2, 1]], np.float32), 3, ids, weights)
    assert ids.tolist() == [[1, 3, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_route_of_a_broken_row_has_valid_ids_and_nan_weights(bad: float) -> None:
    logits = np.zeros((2, 6), np.float32)
    logits[0, 4] = bad
    ids, weights = np.empty((2, 4), np.int64), np.empty((2, 4), np.float32)
    route(logits, 4, ids, weights)
    assert len(set(ids[0])) == 4
    assert set(ids[0]) <= set(range(6))
    assert np.isnan(weights[0]).all()
    np.testing.assert_allclose(weights[1], 0.25)


def test_route_refuses_more_than_there_are() -> None:
    with pytest.raises(ValueError, match="k <= E"):
        route(np.zeros((1, 2), np.float32), 3, np.empty((1, 3), np.int64), np.empty((1, 3), np.float32))
