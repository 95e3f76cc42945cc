"""Gated attention against all scores at once in float64, and to the bit against itself however the rows are cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.attention import attention, attention_inputs
from engine.kernels.context import ComputeContext
from engine.kernels.rope import rope_tables
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import attention as oracle

ONE, TWO, FIVE = ComputeContext(1), ComputeContext(2), ComputeContext(5)


@dataclass
class Case:
    q: np.ndarray  # [T, heads, hd]
    keys: np.ndarray  # [kv, capacity, hd]
    values: np.ndarray
    gates: np.ndarray  # [T, heads 2 hd]
    position: int

    def run(self, context: ComputeContext, start: int, end: int) -> np.ndarray:
        out = np.full((end - start, self.q.shape[1] * self.q.shape[2]), np.nan, np.float32)
        attention(context, self.q[start:end], self.keys, self.values, self.position + start, self.gates[start:end], out)
        return out

    def expected(self) -> np.ndarray:
        return oracle.attention(self.q, self.keys, self.values, self.position, self.gates)


def make_case(heads: int, kv: int, hd: int, position: int, rows: int, seed: int = 0) -> Case:
    """Rows that are not filled yet hold NaN: whoever reads one is found out."""
    rng = np.random.default_rng(seed)
    keys, values = normal(rng, kv, position + rows + 20, hd), normal(rng, kv, position + rows + 20, hd)
    keys[:, position + rows :] = values[:, position + rows :] = np.nan
    return Case(normal(rng, rows, heads, hd, scale=2), keys, values, normal(rng, rows, heads * 2 * hd), position)


@pytest.mark.parametrize(
    ("heads", "kv", "hd"), [(1, 1, 16), (4, 4, 64), (8, 2, 64), (6, 2, 128), (5, 1, 256), (16, 2, 32)]
)
@pytest.mark.parametrize("position", [0, 13, 1015])
def test_o11_equals_the_formula(heads: int, kv: int, hd: int, position: int) -> None:
    case = make_case(heads, kv, hd, position, 19)
    np.testing.assert_allclose(case.run(ONE, 0, 19), case.expected(), rtol=2e-5, atol=2e-6)


@given(
    heads=st.sampled_from([(1, 1), (4, 1), (6, 2), (3, 3), (10, 2)]),
    hd=st.sampled_from([16, 64]),
    position=st.sampled_from([0, 1, 15, 16, 1000, 1023, 1024, 2040]),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_any_cut_and_any_threads_give_the_same_bits(
    heads: tuple[int, int], hd: int, position: int, cuts: list[int], seed: int
) -> None:
    case = make_case(*heads, hd, position, sum(cuts), seed)
    whole = case.run(ONE, 0, sum(cuts))
    assert same_bits(case.run(TWO, 0, sum(cuts)), whole)
    start = 0
    for rows in cuts:
        for context in (ONE, TWO, FIVE):
            assert same_bits(case.run(context, start, start + rows), whole[start : start + rows])
        start += rows


@pytest.mark.parametrize("rows", [1, 2, 3, 15])
def test_long_context_shared_out_by_chunks(rows: int) -> None:
    """Enough work for the chunks to go to several threads."""
    case = make_case(8, 2, 64, 4090, rows)
    alone = case.run(ONE, 0, rows)
    np.testing.assert_allclose(alone, case.expected(), rtol=2e-5, atol=2e-6)
    for context in (TWO, FIVE):
        assert same_bits(case.run(context, 0, rows), alone)


def test_large_scores_do_not_overflow() -> None:
    case = make_case(2, 1, 64, 40, 3)
    case.q *= 100
    np.testing.assert_allclose(case.run(ONE, 0, 3), case.expected(), rtol=2e-3, atol=2e-4)


def test_a_later_row_with_nan_leaves_earlier_rows_alone() -> None:
    case = make_case(4, 1, 64, 30, 6)
    good = case.run(ONE, 0, 6)
    case.keys[:, 34] = case.values[:, 34] = np.nan
    bad = case.run(ONE, 0, 6)
    assert same_bits(bad[:4], good[:4])
    assert np.isnan(bad[4:]).all()


def test_scores_of_minus_infinity_become_nan_not_garbage() -> None:
    case = make_case(1, 1, 16, 0, 1)
    case.keys[:] = -np.inf
    case.q[:] = 1.0
    assert np.isnan(case.run(ONE, 0, 1)).all()


def test_no_rows() -> None:
    case = make_case(2, 1, 16, 5, 0)
    assert case.run(ONE, 0, 0).shape == (0, 32)


def test_refuses_a_cache_that_is_too_small_and_other_shapes() -> None:
    case = make_case(2, 1, 16, 5, 1)
    with pytest.raises(ValueError, match="no rows"):
        attention(ONE, case.q, case.keys, case.values, 26, case.gates, np.empty((1, 32), np.float32))
    with pytest.raises(ValueError, match="out"):
        attention(ONE, case.q, case.keys, case.values, 5, case.gates, np.empty((1, 31), np.float32))
    with pytest.raises(ValueError, match="caches"):
        attention(ONE, case.q, case.keys, case.values[:, :-1].copy(), 5, case.gates, np.empty((1, 32), np.float32))


# ---- inputs ----


@pytest.mark.parametrize(("heads", "kv", "hd", "rotary_dim"), [(4, 2, 64, 16), (3, 1, 256, 64), (2, 2, 32, 32)])
def test_o11_inputs_are_normed_rotated_and_stored(heads: int, kv: int, hd: int, rotary_dim: int) -> None:
    rng = np.random.default_rng(hd)
    rows, position = 5, 7
    qg, k, v = normal(rng, rows, heads * 2 * hd), normal(rng, rows, kv * hd), normal(rng, rows, kv * hd)
    q_scale, k_scale = normal(rng, hd), normal(rng, hd)
    cos, sin = rope_tables(np.arange(position, position + rows), rotary_dim, 1e7, None)
    q = np.empty((rows, heads, hd), np.float32)
    keys, values = np.full((kv, 20, hd), 9, np.float32), np.full((kv, 20, hd), 9, np.float32)
    attention_inputs(qg, k, v, q_scale, k_scale, 1e-6, cos, sin, position, q, keys, values)
    expected = oracle.attention_inputs(qg, k, v, q_scale, k_scale, 1e-6, cos, sin)
    np.testing.assert_allclose(q, expected[0], rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(keys[:, 7:12].transpose(1, 0, 2), expected[1], rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(values[:, 7:12].transpose(1, 0, 2), expected[2])
    for cache in (keys, values):
        assert (cache[:, :7] == 9).all()
        assert (cache[:, 12:] == 9).all()
    one_q, one_keys, one_values = np.empty((1, heads, hd), np.float32), np.zeros_like(keys), np.zeros_like(values)
    attention_inputs(
        qg[3:4], k[3:4], v[3:4], q_scale, k_scale, 1e-6, cos[3:4], sin[3:4], 10, one_q, one_keys, one_values
    )
    assert same_bits(one_q, q[3:4])
    assert same_bits(one_keys[:, 10], keys[:, 10])


def test_inputs_refuse_a_full_cache() -> None:
    z = np.zeros
    f = np.float32
    with pytest.raises(ValueError, match="room"):
        attention_inputs(
            z((2, 64), f), z((2, 32), f), z((2, 32), f), z(32, f), z(32, f), 1e-6, z((2, 4), f), z((2, 4), f), 3,
            z((2, 1, 32), f), z((1, 4, 32), f), z((1, 4, 32), f),
        )  # fmt: skip
