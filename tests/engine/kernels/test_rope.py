"""Rotary tables: plain, far out, and with three axes in turns."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.rope import rope_tables
from tests.naive import attention as oracle


@pytest.mark.parametrize("rotary_dim", [2, 16, 64])
def test_tables_equal_the_formula(rotary_dim: int) -> None:
    positions = np.array([0, 1, 2, 1000, 262_143], np.int64)
    cos, sin = rope_tables(positions, rotary_dim, 1e7, None)
    expected = oracle.rope_tables(positions, rotary_dim, 1e7)
    assert cos.dtype == sin.dtype == np.float32
    np.testing.assert_array_equal(cos, expected[0])
    np.testing.assert_array_equal(sin, expected[1])


@pytest.mark.parametrize(("rotary_dim", "sections"), [(16, (3, 3, 2)), (64, (11, 11, 10)), (64, (22, 5, 5))])
def test_sections_take_turns(rotary_dim: int, sections: tuple[int, ...]) -> None:
    positions = np.array([[5, 5, 5], [5, 6, 7], [9, 8, 5]], np.int64)
    cos, sin = rope_tables(positions, rotary_dim, 1e7, sections)
    expected = oracle.rope_tables(positions, rotary_dim, 1e7, sections)
    np.testing.assert_array_equal(cos, expected[0])
    np.testing.assert_array_equal(sin, expected[1])


def test_equal_axes_are_plain_rope() -> None:
    positions = np.arange(7, dtype=np.int64)
    plain = rope_tables(positions, 16, 1e7, None)
    interleaved = rope_tables(np.stack([positions] * 3), 16, 1e7, (3, 3, 2))
    np.testing.assert_array_equal(plain[0], interleaved[0])
    np.testing.assert_array_equal(plain[1], interleaved[1])


def test_no_positions() -> None:
    cos, sin = rope_tables(np.empty(0, np.int64), 16, 1e7, None)
    assert cos.shape == sin.shape == (0, 8)
