"""Activations."""

from __future__ import annotations

import numpy as np


def silu_multiply(gate, up, out):
    out[:] = gate / (1 + np.exp(-gate)) * up


def sigmoid(x):
    x[:] = 1 / (1 + np.exp(-x))


def add_scaled_rows(out, rows, y, shares):
    for i, row in enumerate(rows):
        out[row] += y[i] * shares[i]
