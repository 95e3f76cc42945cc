"""The delta rule against one token and one head at a time in float64, and to the bit against itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.context import ComputeContext
from engine.kernels.deltanet import delta_replay, delta_rule
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import deltanet as oracle

ONE, TWO, FIVE = ComputeContext(1), ComputeContext(2), ComputeContext(5)


@dataclass
class Case:
    state: np.ndarray  # [nv, dk, dv]
    qkv: np.ndarray  # [T, 2 nk dk + nv dv]
    g: np.ndarray  # [T, nv]
    beta: np.ndarray
    k_head: np.ndarray  # [nv]

    def run(self, context: ComputeContext, state: np.ndarray, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """(state, out) after the rows; `state` is left as it is."""
        new = np.full_like(state, np.nan)
        out = np.full((end - start, state.shape[0] * state.shape[2]), np.nan, np.float32)
        rows = slice(start, end)
        delta_rule(context, state, new, self.qkv[rows], self.g[rows], self.beta[rows], self.k_head, out)
        return new, out

    def replay(self, context: ComputeContext, count: int) -> np.ndarray:
        new = np.full_like(self.state, np.nan)
        delta_replay(context, self.state, new, self.qkv, self.g, self.beta, self.k_head, count)
        return new


def make_case(nk: int, nv: int, dk: int, dv: int, rows: int, seed: int = 0, tiled: bool = False) -> Case:
    rng = np.random.default_rng(seed)
    heads = np.arange(nv, dtype=np.int64)
    return Case(
        normal(rng, nv, dk, dv, scale=0.2),
        normal(rng, rows, 2 * nk * dk + nv * dv),
        -rng.random((rows, nv)).astype(np.float32) * 3,
        rng.random((rows, nv)).astype(np.float32),
        heads % nk if tiled else heads // (nv // nk),
    )


@pytest.mark.parametrize(
    ("nk", "nv", "dk", "dv", "tiled"),
    [(1, 1, 4, 16, False), (2, 2, 16, 16, False), (2, 6, 32, 48, False), (2, 6, 32, 48, True), (2, 4, 128, 128, False)],
)
def test_equals_the_formula(nk: int, nv: int, dk: int, dv: int, tiled: bool) -> None:
    case = make_case(nk, nv, dk, dv, 21, tiled=tiled)
    state, out = case.run(ONE, case.state, 0, 21)
    expected_state, expected_out = oracle.delta_rule(case.state, case.qkv, case.g, case.beta, case.k_head)
    np.testing.assert_allclose(state, expected_state, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(out, expected_out, rtol=1e-4, atol=2e-6)


@given(
    heads=st.sampled_from([(1, 1), (2, 4), (3, 3)]),
    dims=st.sampled_from([(4, 16), (32, 32), (64, 16)]),
    cuts=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_any_cut_and_any_threads_give_the_same_bits(
    heads: tuple[int, int], dims: tuple[int, int], cuts: list[int], seed: int
) -> None:
    case = make_case(*heads, *dims, sum(cuts), seed)
    state, out = case.run(ONE, case.state, 0, sum(cuts))
    for context in (ONE, TWO, FIVE):
        current, start = case.state, 0
        for rows in cuts:
            current, part = case.run(context, current, start, start + rows)
            assert same_bits(part, out[start : start + rows])
            start += rows
        assert same_bits(current, state)


@pytest.mark.parametrize("context", [ONE, TWO, FIVE])
def test_a_long_pass_equals_single_tokens_on_all_threads(context: ComputeContext) -> None:
    """Enough work to wake the team."""
    case = make_case(2, 4, 64, 64, 40)
    state, out = case.run(context, case.state, 0, 40)
    current = case.state
    for t in range(40):
        current, row = case.run(ONE, current, t, t + 1)
        assert same_bits(row, out[t : t + 1])
    assert same_bits(current, state)


@pytest.mark.parametrize("context", [ONE, TWO])
@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 33])
def test_a_replay_leaves_the_state_of_the_first_rows(context: ComputeContext, count: int) -> None:
    case = make_case(2, 4, 32, 32, 33)
    state = case.run(ONE, case.state, 0, count)[0] if count else case.state
    assert same_bits(case.replay(context, count), state)


def test_the_state_may_be_updated_in_place() -> None:
    case = make_case(1, 2, 32, 32, 18)
    state, out = case.run(ONE, case.state, 0, 18)
    again = np.empty_like(out)
    delta_rule(ONE, case.state, case.state, case.qkv, case.g, case.beta, case.k_head, again)
    assert same_bits(again, out)
    assert same_bits(case.state, state)


def test_no_rows_copy_the_state() -> None:
    case = make_case(1, 2, 16, 16, 3)
    state, out = case.run(ONE, case.state, 0, 0)
    assert same_bits(state, case.state)
    assert out.shape == (0, 32)


def test_zero_queries_and_keys_are_no_division_by_zero() -> None:
    case = make_case(1, 1, 16, 16, 2)
    case.qkv[:, :32] = 0
    state, out = case.run(ONE, case.state, 0, 2)
    assert np.isfinite(state).all()
    assert (out == 0).all()


def test_refuses_other_shapes() -> None:
    case = make_case(1, 2, 16, 16, 2)
    out = np.empty((2, 32), np.float32)
    with pytest.raises(ValueError, match="k_head"):
        delta_rule(ONE, case.state, case.state, case.qkv, case.g, case.beta, np.array([0, 1]), out)
    with pytest.raises(ValueError, match="sixteens"):
        delta_rule(
            ONE, case.state[:, :, :8].copy(), case.state[:, :, :8].copy(), case.qkv, case.g, case.beta, case.k_head, out
        )
    with pytest.raises(ValueError, match="g and beta"):
        delta_replay(ONE, case.state, case.state, case.qkv, case.g, case.beta, case.k_head, 3)
    with pytest.raises(ValueError, match="out"):
        delta_rule(ONE, case.state, case.state, case.qkv, case.g, case.beta, case.k_head, out[:1])
