"""Comparing floats by their bits: NaN equals NaN, and 0 differs from −0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def same_bits(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> bool:
    return a.shape == b.shape and np.array_equal(
        np.ascontiguousarray(a).view(np.uint32), np.ascontiguousarray(b).view(np.uint32)
    )


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> npt.NDArray[np.float32]:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def ulps(actual: npt.NDArray[np.float32], exact: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Distance of float32 results from float64 ones in units of the last place of the exact value."""
    spacing = np.spacing(np.abs(exact).astype(np.float32).clip(np.float32(1.2e-38), None)).astype(np.float64)
    return np.abs(actual.astype(np.float64) - exact) / spacing
