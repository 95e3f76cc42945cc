"""Elementwise kernels, the convolution and the gates of DeltaNet."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.activation import add_scaled_rows, sigmoid, silu_multiply
from engine.kernels.convolution import causal_conv_silu
from engine.kernels.deltanet import delta_gates
from tests.engine.kernels.bits import normal, same_bits
from tests.naive import deltanet as oracle
from tests.naive import functions


@pytest.mark.parametrize("width", [1, 15, 16, 50, 3584])
def test_silu_multiply(width: int) -> None:
    rng = np.random.default_rng(width)
    gate, up = normal(rng, 3, width, scale=5), normal(rng, 3, width)
    out, one = np.empty_like(gate), np.empty((1, width), np.float32)
    silu_multiply(gate, up, out)
    np.testing.assert_allclose(out, functions.silu(gate) * up, rtol=1e-6)
    silu_multiply(gate[1:2], up[1:2], one)
    assert same_bits(one, out[1:2]), "a row's bits depend on where it stands"
    silu_multiply(gate, up, gate)
    assert same_bits(gate, out), "in place gives other bits"


def test_silu_multiply_refuses_other_shapes() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    with pytest.raises(ValueError, match="one shape"):
        silu_multiply(a, b, a)


def test_sigmoid_in_place() -> None:
    x = normal(np.random.default_rng(0), 5, 7, scale=20)
    expected = functions.sigmoid(x)
    sigmoid(x)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_add_scaled_rows_adds_in_order() -> None:
    rng = np.random.default_rng(1)
    out, y, shares = normal(rng, 4, 21), normal(rng, 3, 21), normal(rng, 3)
    rows = np.array([2, 0, 2], np.int64)
    expected = out.astype(np.float64)
    for i, row in enumerate(rows):
        expected[row] += shares[i].astype(np.float64) * y[i]
    add_scaled_rows(out, rows, y, shares)
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("row", [-1, 4])
def test_add_scaled_rows_refuses_a_row_outside(row: int) -> None:
    with pytest.raises(IndexError):
        add_scaled_rows(
            np.zeros((4, 16), np.float32), np.array([row]), np.zeros((1, 16), np.float32), np.zeros(1, np.float32)
        )


@pytest.mark.parametrize(("taps", "channels"), [(4, 100), (4, 16), (2, 33), (1, 5)])
def test_convolution_for_any_cut(taps: int, channels: int) -> None:
    rng = np.random.default_rng(taps)
    inputs, weight = normal(rng, taps - 1 + 6, channels, scale=2), normal(rng, channels, taps)
    out = np.empty((6, channels), np.float32)
    causal_conv_silu(inputs, weight, out)
    np.testing.assert_allclose(out, oracle.causal_conv_silu(inputs, weight), rtol=2e-5, atol=2e-6)
    for t in range(6):
        one = np.empty((1, channels), np.float32)
        causal_conv_silu(inputs[t : t + taps], weight, one)
        assert same_bits(one, out[t : t + 1])


def test_the_last_tap_meets_the_row_itself() -> None:
    inputs, weight = np.zeros((4, 1), np.float32), np.array([[0, 0, 0, 1]], np.float32)
    inputs[3] = 2.0
    out = np.empty((1, 1), np.float32)
    causal_conv_silu(inputs, weight, out)
    np.testing.assert_allclose(out, functions.silu(np.array([[2.0]])), rtol=1e-6)


def test_convolution_refuses_missing_rows() -> None:
    with pytest.raises(ValueError, match="inputs"):
        causal_conv_silu(np.zeros((3, 8), np.float32), np.zeros((8, 4), np.float32), np.zeros((1, 8), np.float32))


@pytest.mark.parametrize("heads", [1, 6, 16, 37])
def test_gates(heads: int) -> None:
    rng = np.random.default_rng(heads)
    a, b, bias = normal(rng, 4, heads, scale=10), normal(rng, 4, heads, scale=10), normal(rng, heads)
    rate = np.exp(normal(rng, heads))
    g, beta = np.empty_like(a), np.empty_like(a)
    delta_gates(a, b, rate, bias, g, beta)
    expected_g, expected_beta = oracle.delta_gates(a, b, rate, bias)
    np.testing.assert_allclose(g, expected_g, rtol=2e-6)
    np.testing.assert_allclose(beta, expected_beta, rtol=1e-6)
    assert (g <= 0).all()
    one_g, one_beta = np.empty((1, heads), np.float32), np.empty((1, heads), np.float32)
    delta_gates(a[3:], b[3:], rate, bias, one_g, one_beta)
    assert same_bits(one_g, g[3:])
    assert same_bits(one_beta, beta[3:])
