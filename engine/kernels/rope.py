"""Rotary position embedding (Su et al., RoFormer, 2021) on the first `rotary_dim` dimensions of a head, in halves.

Pictures have three position axes (time, height, width), which share the frequencies in turns (M-RoPE, interleaved); for
text all three are equal and the result is plain RoPE.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.lanes import load_float, store_float

Floats = npt.NDArray[np.float32]


def rope_tables(
    positions: npt.NDArray[np.int64], rotary_dim: int, theta: float, sections: tuple[int, ...] | None = None
) -> tuple[Floats, Floats]:
    """cos and sin of position · theta^(−2i / rotary_dim), both [T, rotary_dim / 2].

    positions: [T], or [3, T] for time, height and width; `sections` says how many frequencies each of those takes.
    Frequencies and angles are rounded to float32, as they were when the models were trained.
    """
    frequencies = _frequencies(rotary_dim, theta)
    if positions.ndim == 1:
        angles = positions.astype(np.float32)[:, None] * frequencies
    else:
        axes = _axes(rotary_dim // 2, tuple(sections) if sections is not None else None)
        angles = positions.astype(np.float32)[axes].T * frequencies
    exact = angles.astype(np.float64)  # float64 cos and sin round to the same float32 with any library
    return np.cos(exact).astype(np.float32), np.sin(exact).astype(np.float32)


@lru_cache(maxsize=8)
def _frequencies(rotary_dim: int, theta: float) -> Floats:
    exponents = np.arange(0, rotary_dim, 2, dtype=np.float64) / rotary_dim
    return (1.0 / theta**exponents).astype(np.float32)


@lru_cache(maxsize=8)
def _axes(half: int, sections: tuple[int, ...] | None) -> npt.NDArray[np.int64]:
    """Which of the three positions each frequency takes: t h w t h w …, t again where a section is used up."""
    axes = np.zeros(half, np.int64)
    if sections is not None:
        for axis in (1, 2):
            axes[axis : 3 * sections[axis] : 3] = axis
    return axes


@njit
def rotate(vector, cos, sin, half):  # type: ignore[no-untyped-def]
    """Rotate dimensions i and i + half of the vector at an address by the angles of the tables, for i < half."""
    for i in range(0, 4 * half, 4):
        c, s = load_float(cos + i), load_float(sin + i)
        first, second = load_float(vector + i), load_float(vector + 4 * half + i)
        store_float(vector + i, first * c - second * s)
        store_float(vector + 4 * half + i, second * c + first * s)
