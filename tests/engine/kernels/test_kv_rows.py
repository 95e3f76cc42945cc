"""Rows of a KV cache are stored as the naive form says, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.kv_rows import encode_rows
from engine.kernels.kv_types import KV_TYPES
from tests.engine.kernels.bits import normal
from tests.naive import kv_cache as naive

NAMES = list(KV_TYPES)


def encoded(name: str, rows: np.ndarray) -> np.ndarray:
    kind = KV_TYPES[name]
    out = np.full((len(rows), kind.row_bytes(rows.shape[1])), 0xAA, np.uint8)
    encode_rows(kind.code, rows, out)
    return out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-41, 1e-37, 1.0, 1e30])
def test_rows_are_stored_as_the_naive_form_says(name: str, scale: float) -> None:
    rows = normal(np.random.default_rng(1), 20, 96, scale=scale)
    np.testing.assert_array_equal(encoded(name, rows), naive.encode(name, rows))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.lists(st.floats(width=32, allow_nan=False), min_size=32, max_size=32))
def test_any_numbers(name: str, numbers: list[float]) -> None:
    """With infinity and the smallest and largest numbers that there are."""
    rows = np.array([numbers], np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = naive.decode(name, naive.encode(name, rows), 32)
        actual = naive.decode(name, encoded(name, rows), 32)
    np.testing.assert_array_equal(actual, expected)


def test_bf16_rounds_ties_to_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7FFFFF, 0x80000000] * 16, np.uint32)
    stored = encoded("bf16", bits.view(np.float32)[None]).view(np.uint16)[0, :6]
    assert stored.tolist() == [0x3F80, 0x3F82, 0x3F80, 0x3F81, 0x7F80, 0x8000]


def test_q8_rounds_ties_to_even() -> None:
    rows = np.zeros((1, 32), np.float32)
    rows[0, :6] = [127, 0.5, 1.5, 2.5, -0.5, -3.5]
    assert encoded("q8", rows)[0, :6].view(np.int8).tolist() == [127, 0, 2, 2, 0, -4]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_hidden(name: str, fault: float) -> None:
    rows = normal(np.random.default_rng(2), 1, 64)
    rows[0, 5] = fault
    with np.errstate(invalid="ignore"):
        decoded = naive.decode(name, encoded(name, rows), 64)
    assert not np.isfinite(decoded[0, 5])
    assert np.isfinite(decoded[0, 32:]).all()


@pytest.mark.parametrize(("name", "most"), [("bf16", 2**-8), ("q8", 1 / 254)])
def test_what_rounding_costs_at_most(name: str, most: float) -> None:
    """A bfloat16 number is half of its last place off, a byte half of the step of its block."""
    rows = normal(np.random.default_rng(3), 50, 256)
    largest = np.abs(rows.reshape(50, -1, 32)).max(axis=-1).repeat(32, axis=-1)
    error = np.abs(naive.decode(name, encoded(name, rows), 256) - rows)
    assert (error <= (np.abs(rows) if name == "bf16" else largest) * most * 1.000001).all()


def test_sizes() -> None:
    assert [kind.row_bytes(256) for kind in KV_TYPES.values()] == [1024, 512, 288]
    assert [kind.row_bytes(48) for kind in (KV_TYPES["f32"], KV_TYPES["bf16"])] == [192, 96]
    assert not KV_TYPES["q8"].fits(48)
    with pytest.raises(ValueError, match="multiple of 32 numbers, not 48"):
        KV_TYPES["q8"].row_bytes(48)
