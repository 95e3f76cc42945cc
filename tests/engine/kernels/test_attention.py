"""Gated attention against all scores at once in float64, and to the bit against itself however the rows are cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.attention import attention, attention_inputs
from engine.kernels.context import ComputeContext
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.kernels.rope import rope_tables
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import attention as oracle
from tests.naive import kv_cache as stored

ONE, TWO, FIVE = ComputeContext(1), ComputeContext(2), ComputeContext(5)


F32 = KV_TYPES["f32"]
EVERY_TYPE = pytest.mark.parametrize("kind", KV_TYPES.values(), ids=list(KV_TYPES))


@dataclass
class Case:
    q: np.ndarray  # [T, heads, hd]
    keys: np.ndarray  # [kv, capacity, row bytes]
    values: np.ndarray
    kind: KvType
    gates: np.ndarray  # [T, heads 2 hd]
    position: int

    def run(self, context: ComputeContext, start: int, end: int) -> np.ndarray:
        out = np.full((end - start, self.q.shape[1] * self.q.shape[2]), np.nan, np.float32)
        attention(
            context, self.q[start:end], self.keys, self.values, self.kind, self.position + start,
            self.gates[start:end], out,
        )  # fmt: skip
        return out

    def floats(self) -> Case:
        """The same with float32 caches of the numbers that are stored."""
        keys, values = (
            stored.encode("f32", stored.decode(self.kind.name, cache, self.q.shape[2]))
            for cache in (self.keys, self.values)
        )
        return replace(self, keys=keys, values=values, kind=F32)

    def expected(self) -> np.ndarray:
        case = self.floats()
        keys, values = case.keys.view(np.float32), case.values.view(np.float32)
        return oracle.attention(self.q, keys, values, self.position, self.gates)


def make_case(
    heads: int, kv: int, hd: int, position: int, rows: int, *, kind: KvType = F32, seed: int = 0, scale: float = 1
) -> Case:
    """Rows that are not filled yet hold NaN, whatever the type: whoever reads one is found out."""
    rng = np.random.default_rng(seed)
    caches = np.full((2, kv, position + rows + 20, kind.row_bytes(hd)), 0xFF, np.uint8)
    caches[:, :, : position + rows] = stored.encode(kind.name, normal(rng, 2, kv, position + rows, hd, scale=scale))
    q, gates = normal(rng, rows, heads, hd, scale=2), normal(rng, rows, heads * 2 * hd)
    return Case(q, caches[0], caches[1], kind, gates, position)


@pytest.mark.parametrize(
    ("heads", "kv", "hd"), [(1, 1, 16), (4, 4, 64), (8, 2, 64), (6, 2, 128), (5, 1, 256), (16, 2, 32)]
)
@pytest.mark.parametrize("position", [0, 13, 1015])
def test_o11_equals_the_formula(heads: int, kv: int, hd: int, position: int) -> None:
    case = make_case(heads, kv, hd, position, 19)
    np.testing.assert_allclose(case.run(ONE, 0, 19), case.expected(), rtol=2e-5, atol=2e-6)


@given(
    kind=st.sampled_from(list(KV_TYPES.values())),
    heads=st.sampled_from([(1, 1), (4, 1), (6, 2), (3, 3), (10, 2)]),
    hd=st.sampled_from([32, 64]),
    position=st.sampled_from([0, 1, 15, 16, 1000, 1023, 1024, 2040]),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_any_cut_and_any_threads_give_the_same_bits(
    kind: KvType, heads: tuple[int, int], hd: int, position: int, cuts: list[int], seed: int
) -> None:
    case = make_case(*heads, hd, position, sum(cuts), kind=kind, seed=seed)
    whole = case.run(ONE, 0, sum(cuts))
    assert same_bits(case.run(TWO, 0, sum(cuts)), whole)
    start = 0
    for rows in cuts:
        for context in (ONE, TWO, FIVE):
            assert same_bits(case.run(context, start, start + rows), whole[start : start + rows])
        start += rows


@EVERY_TYPE
@pytest.mark.parametrize("rows", [1, 3, 15, 40])
@pytest.mark.parametrize("hd", [64, 256])
def test_any_type_is_float32_attention_over_the_numbers_that_are_stored(kind: KvType, rows: int, hd: int) -> None:
    """To the bit: what is decoded is exact, and all that follows is the same."""
    case = make_case(8, 2, hd, 250, rows, kind=kind)
    assert same_bits(case.run(ONE, 0, rows), case.floats().run(ONE, 0, rows))
    np.testing.assert_allclose(case.run(TWO, 0, rows), case.expected(), rtol=2e-5, atol=2e-6)


@EVERY_TYPE
@pytest.mark.parametrize("rows", [1, 3, 15])
def test_long_context_shared_out_by_chunks(kind: KvType, rows: int) -> None:
    """Enough work for the chunks to go to several threads."""
    case = make_case(8, 2, 64, 4090, rows, kind=kind)
    alone = case.run(ONE, 0, rows)
    np.testing.assert_allclose(alone, case.expected(), rtol=2e-5, atol=2e-6)
    for context in (TWO, FIVE):
        assert same_bits(case.run(context, 0, rows), alone)


def test_large_scores_do_not_overflow() -> None:
    case = make_case(2, 1, 64, 40, 3)
    case.q *= 100
    np.testing.assert_allclose(case.run(ONE, 0, 3), case.expected(), rtol=2e-3, atol=2e-4)


@EVERY_TYPE
def test_a_later_row_with_nan_leaves_earlier_rows_alone(kind: KvType) -> None:
    case = make_case(4, 1, 64, 30, 6, kind=kind)
    good = case.run(ONE, 0, 6)
    case.keys[:, 34] = case.values[:, 34] = 0xFF
    bad = case.run(ONE, 0, 6)
    assert same_bits(bad[:4], good[:4])
    assert np.isnan(bad[4:]).all()


def test_scores_of_minus_infinity_become_nan_not_garbage() -> None:
    case = make_case(1, 1, 16, 0, 1)
    case.keys.view(np.float32)[:] = -np.inf
    case.q[:] = 1.0
    assert np.isnan(case.run(ONE, 0, 1)).all()


def test_no_rows() -> None:
    case = make_case(2, 1, 16, 5, 0)
    assert case.run(ONE, 0, 0).shape == (0, 32)


def test_refuses_a_cache_that_is_too_small_or_of_another_type_and_other_shapes() -> None:
    case = make_case(2, 1, 32, 5, 1)

    def run(keys: np.ndarray, values: np.ndarray, kind: KvType, position: int, width: int) -> None:
        attention(ONE, case.q, keys, values, kind, position, case.gates, np.empty((1, width), np.float32))

    with pytest.raises(ValueError, match="no rows"):
        run(case.keys, case.values, F32, 26, 64)
    with pytest.raises(ValueError, match="out"):
        run(case.keys, case.values, F32, 5, 63)
    with pytest.raises(ValueError, match="caches"):
        run(case.keys, case.values[:, :-1].copy(), F32, 5, 64)
    with pytest.raises(ValueError, match="caches"):
        run(case.keys, case.values, KV_TYPES["bf16"], 5, 64)


# ---- inputs ----


@EVERY_TYPE
@pytest.mark.parametrize(("heads", "kv", "hd", "rotary_dim"), [(4, 2, 64, 16), (3, 1, 256, 64), (2, 2, 32, 32)])
def test_o11_inputs_are_normed_rotated_and_stored(kind: KvType, heads: int, kv: int, hd: int, rotary_dim: int) -> None:
    rng = np.random.default_rng(hd)
    rows, position = 5, 7
    qg, k, v = normal(rng, rows, heads * 2 * hd), normal(rng, rows, kv * hd), normal(rng, rows, kv * hd)
    q_scale, k_scale = normal(rng, hd), normal(rng, hd)
    cos, sin = rope_tables(np.arange(position, position + rows), rotary_dim, 1e7, None)
    expected = oracle.attention_inputs(qg, k, v, q_scale, k_scale, 1e-6, cos, sin)

    def run(start: int, end: int, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = np.empty((end - start, heads, hd), np.float32)
        caches = np.full((2, kv, 20, kind.row_bytes(hd)), 9, np.uint8)
        attention_inputs(
            qg[start:end], own, v[start:end], q_scale, k_scale, 1e-6, cos[start:end], sin[start:end], position + start,
            q, kind.code, kind.row_bytes(hd), caches[0], caches[1],
        )  # fmt: skip
        return q, caches[0], caches[1]

    own = k.copy()
    q, keys, values = run(0, rows, own)
    np.testing.assert_allclose(q, expected[0], rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(own.reshape(rows, kv, hd), expected[1], rtol=1e-5, atol=2e-6)
    for cache, floats in ((keys, own.reshape(rows, kv, hd)), (values, expected[2])):
        np.testing.assert_array_equal(cache[:, 7:12].transpose(1, 0, 2), stored.encode(kind.name, floats))
        assert (cache[:, :7] == 9).all()
        assert (cache[:, 12:] == 9).all()
    one_q, one_keys, one_values = run(3, 4, k[3:4].copy())
    assert same_bits(one_q, q[3:4])
    np.testing.assert_array_equal(one_keys[:, 10], keys[:, 10])
    np.testing.assert_array_equal(one_values[:, 10], values[:, 10])


def test_inputs_refuse_a_full_cache() -> None:
    z = np.zeros
    f = np.float32
    with pytest.raises(ValueError, match="room"):
        attention_inputs(
            z((2, 64), f), z((2, 32), f), z((2, 32), f), z(32, f), z(32, f), 1e-6, z((2, 4), f), z((2, 4), f), 3,
            z((2, 1, 32), f), 0, 128, z((1, 4, 128), np.uint8), z((1, 4, 128), np.uint8),
        )  # fmt: skip
