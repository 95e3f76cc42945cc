"""Matrices are views of the buffer, with the block scales that belong to their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.weights.ranges import ByteRange
from engine.weights.units import UnitTensor
from engine.weights.views import matrices

BUFFER = np.arange(100, dtype=np.uint8)


def tensor(rows: int, cols: int, **settings: object) -> UnitTensor:
    return UnitTensor("w", "F8_E4M3", rows, cols, ByteRange(Path("f"), 0, 10), **settings)  # type: ignore[arg-type]


def test_nothing_is_copied() -> None:
    matrix = matrices([tensor(1, 10)], [7], BUFFER, {})["w"]
    assert np.shares_memory(matrix.data, BUFFER)
    assert matrix.data.tolist() == list(range(7, 17))
    assert matrix.scale is None


def test_the_scales_of_a_run_of_rows() -> None:
    scales = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = matrices([tensor(256, 256, scale="s", scale_rows=(2, 4))], [0], BUFFER, {"s": scales})["w"].scale
    np.testing.assert_array_equal(found, scales[2:4])


def test_the_scales_of_one_packed_expert() -> None:
    scales = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    found = matrices([tensor(256, 256, scale="s", scale_index=1)], [0], BUFFER, {"s": scales})["w"].scale
    np.testing.assert_array_equal(found, scales[1])
