"""exp, sigmoid, silu and softplus: accuracy over the whole range, and the ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.kernels import elementary
from engine.kernels.compiled import Kernel
from engine.kernels.lanes import LANES, load, store
from tests.engine.kernels.bits import ulps
from tests.naive import functions


def _kernel(function: Callable[..., object]) -> Kernel:
    def apply(x, out):  # type: ignore[no-untyped-def]
        for i in range(0, x.size, LANES):
            store(out.ctypes.data + 4 * i, function(load(x.ctypes.data + 4 * i)))

    return Kernel(apply, "void(float32[::1], float32[::1])", cache=False)


def _apply(function: Callable[..., object], x: np.ndarray) -> np.ndarray:
    padded = np.zeros(-(-x.size // LANES) * LANES, np.float32)
    padded[: x.size] = x
    out = np.empty_like(padded)
    _kernel(function)(padded, out)
    return out[: x.size]


def _range() -> np.ndarray:
    """Dense near zero, out to where exp overflows."""
    rng = np.random.default_rng(0)
    return np.concatenate([np.linspace(-87, 88, 200_000), rng.standard_normal(100_000), [0.0]]).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "exact", "most"),
    [
        (elementary.exp, lambda x: np.exp(x.astype(np.float64)), 1.0),
        (elementary.sigmoid, functions.sigmoid, 2.5),
        (elementary.silu, functions.silu, 3.0),
        (elementary.softplus, functions.softplus, 2.5),
    ],
    ids=["exp", "sigmoid", "silu", "softplus"],
)
def test_error_in_units_of_the_last_place(
    function: Callable[..., object], exact: Callable[..., np.ndarray], most: float
) -> None:
    x = _range()
    error = ulps(_apply(function, x), exact(x))
    assert error.max() <= most, f"{error.max():.2f} ulp at {x[error.argmax()]!r}"


def test_exp_at_the_ends() -> None:
    x = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 88.72283, 88.8, -87.4, -103.0, -103.9, -104.5, 1e30, -1e30], np.float32
    )
    y = _apply(elementary.exp, x)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(y[:5], expected[:5])
    np.testing.assert_allclose(y[5:], expected[5:], rtol=2e-7, atol=1.5e-45)  # one subnormal step


def test_sigmoid_and_softplus_at_the_ends() -> None:
    x = np.array([np.inf, -np.inf, 1e30, -1e30, 100.0, -100.0], np.float32)
    np.testing.assert_allclose(_apply(elementary.sigmoid, x), functions.sigmoid(x), rtol=1e-6, atol=1.5e-45)
    np.testing.assert_allclose(_apply(elementary.softplus, x), functions.softplus(x), rtol=1e-6, atol=3e-45)
    for function in (elementary.sigmoid, elementary.silu, elementary.softplus):
        assert np.isnan(_apply(function, np.array([np.nan], np.float32))).all()
