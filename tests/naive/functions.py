"""Elementary functions in float64, written so that neither end overflows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def sigmoid(x: Array) -> npt.NDArray[np.float64]:
    x = x.astype(np.float64)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def silu(x: Array) -> npt.NDArray[np.float64]:
    return x.astype(np.float64) * sigmoid(x)


def softplus(x: Array) -> npt.NDArray[np.float64]:
    x = x.astype(np.float64)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softmax(x: Array) -> npt.NDArray[np.float64]:
    x = x.astype(np.float64)
    p = np.exp(x - x.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)
