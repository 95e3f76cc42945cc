"""Converting a matrix in memory: the same as decoding and encoding it whole."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from engine.quantise import convert as module
from engine.quantise.convert import convert
from engine.quantise.encode import encode_rows


@pytest.mark.parametrize("rows", [1, 7, 30])
def test_in_pieces_as_whole(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 3 * 256)  # three rows at a time
    values = np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
    source = Matrix("BF16", rows, 256, encode_rows(values, "BF16").reshape(-1))
    result = convert(source, "Q8_0", np.empty(rows * 272, np.uint8))
    exact = np.empty((rows, 256), np.float32)
    dequantise_rows(source, np.arange(rows), exact)
    assert (result.format, result.rows, result.cols) == ("Q8_0", rows, 256)
    np.testing.assert_array_equal(result.data.reshape(rows, -1), encode_rows(exact, "Q8_0"))
