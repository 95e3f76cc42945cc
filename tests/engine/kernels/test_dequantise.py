"""The floats of every weight format, equal to the bit to those of the reference decoder."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.kernels.formats import FORMATS
from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from tests.naive.weight_matrices import random_matrix, values_of

STORED = ["F16", "BF16", *(name for name in FORMATS if FORMATS[name].block_elements > 1 and name != "NVFP4")]


def rows_of(matrix: Matrix, ids: np.ndarray) -> np.ndarray:
    out = np.full((len(ids), matrix.cols), np.nan, np.float32)
    dequantise_rows(matrix, ids, out)
    return out


def assert_same_bits(out: np.ndarray, expected: np.ndarray) -> None:
    assert (np.isnan(out) == np.isnan(expected)).all()
    np.testing.assert_array_equal(out.view(np.int32)[~np.isnan(out)], expected.view(np.int32)[~np.isnan(out)])


@pytest.mark.parametrize("name", STORED)
def test_blocks_are_those_of_the_reference(name: str, data: Path) -> None:
    with np.load(data / "dequant" / "blocks.npz") as blocks:
        for kind in ("", "real_"):
            if f"{name}.{kind}raw" not in blocks:
                continue
            raw, expected = blocks[f"{name}.{kind}raw"], blocks[f"{name}.{kind}f32"]
            rows, cols = expected.shape
            matrix = Matrix(name, rows, cols, raw.reshape(-1))
            assert_same_bits(rows_of(matrix, np.arange(rows)), expected)
            one_row = Matrix(name, 1, rows * cols, raw.reshape(-1))
            assert_same_bits(rows_of(one_row, np.arange(1)), expected.reshape(1, -1))


def test_nvfp4_with_every_scale() -> None:
    raw = np.random.default_rng(1).integers(0, 256, (64, 36), dtype=np.uint8)
    raw[:, :4] = np.arange(256).reshape(64, 4)
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.NVFP4).astype(np.float32)
    assert_same_bits(rows_of(Matrix("NVFP4", 64, 64, raw.reshape(-1)), np.arange(64)), expected)


def test_every_half_precision_number() -> None:
    codes = np.arange(65536, dtype=np.uint16)
    matrix = Matrix("F16", 1, codes.size, codes.view(np.uint8))
    assert_same_bits(rows_of(matrix, np.zeros(1, np.int64)), codes.view(np.float16).astype(np.float32)[None])


def test_fp8_with_every_code_and_its_blocks_factors() -> None:
    codes = np.tile(np.arange(256, dtype=np.uint8), (130, 1))
    scale = np.array([[0.5, 3.0], [7.0, 0.1]], np.float32)
    matrix = Matrix("F8_E4M3", 130, 256, codes.reshape(-1), scale)
    out = rows_of(matrix, np.array([0, 129]))
    assert np.isnan(out[:, [0x7F, 0xFF]]).all()
    finite = np.delete(np.arange(256), [0x7F, 0xFF])
    assert_same_bits(out[:, finite], values_of(matrix)[[0, 129]][:, finite].astype(np.float32))


@pytest.mark.parametrize("name", ["BF16", "Q8_0", "Q4_K"])
def test_rows_come_in_the_order_of_the_ids(name: str) -> None:
    matrix = random_matrix(name, 7, 256, np.random.default_rng(2))
    ids = np.array([6, 0, 3, 3])
    assert_same_bits(rows_of(matrix, ids), values_of(matrix)[ids].astype(np.float32))
    assert rows_of(matrix, ids[:0]).shape == (0, 256)


def test_ids_and_shapes_are_checked() -> None:
    matrix = random_matrix("BF16", 7, 64, np.random.default_rng(3))
    for wrong in (-1, 7):
        with pytest.raises(IndexError, match=f"row {wrong}.*7 rows"):
            rows_of(matrix, np.array([0, wrong]))
    with pytest.raises(ValueError, match=r"\(2, 64\).*\(3, 64\)"):
        dequantise_rows(matrix, np.arange(2), np.zeros((3, 64), np.float32))
