"""Root-mean-square norms against float64, row by row and all at once."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.deltanet import gated_norm
from engine.kernels.norm import add_rms_norm, rms_norm
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import norm as oracle

EPS = 1e-6
WIDTHS = [1, 7, 16, 17, 64, 1000, 2048]


@pytest.mark.parametrize("width", WIDTHS)
def test_o02_rms_norm_equals_the_formula_for_any_cut(width: int) -> None:
    rng = np.random.default_rng(width)
    x, scale = normal(rng, 5, width, scale=3), normal(rng, width)
    scale.flags.writeable = False
    out, one = np.empty_like(x), np.empty((1, width), np.float32)
    rms_norm(x, scale, EPS, out)
    np.testing.assert_allclose(out, oracle.rms_norm(x, scale, EPS), rtol=1e-6, atol=1e-7)
    for t in range(5):
        rms_norm(x[t : t + 1], scale, EPS, one)
        assert same_bits(one, out[t : t + 1])


def test_rms_norm_in_place_and_of_zeros() -> None:
    x = np.zeros((2, 20), np.float32)
    x[1] = 3.0
    rms_norm(x, np.ones(20, np.float32), EPS, x)
    assert (x[0] == 0).all()
    np.testing.assert_allclose(x[1], 1.0, rtol=1e-6)


def test_rms_norm_of_no_rows() -> None:
    rms_norm(np.empty((0, 8), np.float32), np.ones(8, np.float32), EPS, np.empty((0, 8), np.float32))


def test_nan_stays_in_its_row() -> None:
    x = np.ones((3, 40), np.float32)
    x[1, 17] = np.nan
    out = np.empty_like(x)
    rms_norm(x, np.ones(40, np.float32), EPS, out)
    assert np.isnan(out[1]).all()
    assert np.isfinite(out[[0, 2]]).all()


def test_rms_norm_refuses_other_shapes() -> None:
    x = np.zeros((2, 16), np.float32)
    with pytest.raises(ValueError, match="scale"):
        rms_norm(x, np.ones(15, np.float32), EPS, x)
    with pytest.raises(ValueError, match="out"):
        rms_norm(x, np.ones(16, np.float32), EPS, np.zeros((1, 16), np.float32))


@pytest.mark.parametrize("width", WIDTHS)
def test_o02_add_rms_norm_is_addition_then_norm(width: int) -> None:
    rng = np.random.default_rng(width)
    residual, y, scale = normal(rng, 3, width), normal(rng, 3, width), normal(rng, width)
    total, expected, out = residual + y, np.empty_like(residual), np.empty_like(residual)
    rms_norm(total, scale, EPS, expected)
    add_rms_norm(residual, y, scale, EPS, out)
    assert same_bits(residual, total)
    assert same_bits(out, expected)


@pytest.mark.parametrize(("heads", "dv"), [(3, 16), (2, 128), (4, 20)])
def test_gated_norm_norms_each_head_then_gates(heads: int, dv: int) -> None:
    rng = np.random.default_rng(dv)
    o, z, scale = normal(rng, 4, heads * dv), normal(rng, 4, heads * dv, scale=4), normal(rng, dv)
    out, one = np.empty_like(o), np.empty((1, heads * dv), np.float32)
    gated_norm(o, z, scale, EPS, out)
    np.testing.assert_allclose(out, oracle.gated_norm(o, z, scale, EPS), rtol=2e-6, atol=1e-7)
    gated_norm(o[2:3], z[2:3], scale, EPS, one)
    assert same_bits(one, out[2:3])
