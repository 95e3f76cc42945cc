"""Products with weights of every format: right, the same to the bit however the work is cut, and refused when unfit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS, row_bytes
from engine.kernels.matmul import linear, linear_many, warm_up
from engine.kernels.matrix import Matrix
from tests.naive.weight_matrices import int8_activations, random_matrix, values_of

FLOATS = ["F32", "F16", "BF16", "F8_E4M3"]
# One of every kind of arithmetic; what remains takes minutes to compile.
COMMON = ["BF16", "F8_E4M3", "Q8_0", "Q4_0", "Q5_1", "Q4_K", "Q6_K", "IQ4_XS"]
COMMON_WITH_FLOATS = ["Q5_0", "Q4_K", "IQ3_S"]


def sparsely(common: list[str], every: list[str] | None = None) -> list[object]:
    """All formats as parameters, those that are not common marked slow."""
    names = list(FORMATS) if every is None else every
    return [pytest.param(name, marks=[] if name in common else [pytest.mark.slow]) for name in names]


BLOCKS = [name for name in FORMATS if name not in FLOATS]


def product(matrix: Matrix, x: np.ndarray, threads: int = 1, float_activations: bool = False) -> np.ndarray:
    out = np.full((len(x), matrix.rows), np.nan, np.float32)
    linear(ComputeContext(threads, float_activations), matrix, x, out)
    return out


def activations(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return rng.standard_normal((rows, cols), dtype=np.float32)


def lengths(name: str) -> tuple[int, ...]:
    """Numbers of columns: whole steps, less than one, some and a rest."""
    return {1: (256, 10, 200), 32: (512, 96, 160 + 256), 64: (512, 64, 192 + 256), 256: (512, 256, 1280)}[
        FORMATS[name].block_elements
    ]


def assert_close(out: np.ndarray, x: np.ndarray, weights: np.ndarray, tolerance: float) -> None:
    """Errors are measured against the product of the vectors' lengths, which a sum's rounding errors grow with."""
    lengths = np.sqrt((x.astype(np.float64) ** 2).sum(1)[:, None] * (weights**2).sum(1)[None])
    error = np.abs(out - x.astype(np.float64) @ weights.T) / (lengths + 1e-30)
    assert error.max() < tolerance


@pytest.mark.parametrize("name", sparsely(COMMON))
def test_o03_product_is_that_of_the_weights(name: str) -> None:
    rng = np.random.default_rng(1)
    group = {1: 0, 256: 256}.get(FORMATS[name].block_elements, 32)
    for cols in lengths(name):
        matrix, x = random_matrix(name, 37, cols, rng), activations(rng, 3, cols)
        weights, out = values_of(matrix), product(matrix, x)
        if group:
            assert_close(out, int8_activations(x, group), weights, 1e-6)
            assert_close(out, x, weights, 3e-3 * np.sqrt(512 / cols))
        else:
            assert_close(out, x, weights, 1e-6)


@pytest.mark.parametrize("name", sparsely(COMMON_WITH_FLOATS, BLOCKS))
def test_float_activations_leave_only_the_rounding_of_sums(name: str) -> None:
    rng = np.random.default_rng(2)
    for cols in lengths(name):
        matrix, x = random_matrix(name, 5, cols, rng), activations(rng, 3, cols)
        assert_close(product(matrix, x, float_activations=True), x, values_of(matrix), 5e-7)


def assert_same_bits(out: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


@pytest.mark.parametrize("name", sparsely(COMMON))
def test_o04_a_row_has_the_same_bits_among_1_to_15_rows(name: str) -> None:
    rng = np.random.default_rng(3)
    matrix, x = random_matrix(name, 300, lengths(name)[2], rng), activations(rng, 15, lengths(name)[2])
    alone = np.concatenate([product(matrix, row[None]) for row in x])
    for count in range(2, 16):
        assert_same_bits(product(matrix, np.ascontiguousarray(x[15 - count :]), 1 + count % 3), alone[15 - count :])


@pytest.mark.parametrize("name", sparsely(["Q4_K"], BLOCKS))
def test_a_row_has_the_same_bits_with_float_activations(name: str) -> None:
    rng = np.random.default_rng(14)
    cols = lengths(name)[2]
    matrix, x = random_matrix(name, 50, cols, rng), activations(rng, 9, cols)
    alone = np.concatenate([product(matrix, row[None], float_activations=True) for row in x])
    for count in (3, 4, 9):
        assert_same_bits(product(matrix, np.ascontiguousarray(x[:count]), 2, True), alone[:count])


@pytest.mark.parametrize("name", sparsely(["BF16", "Q8_0", "Q4_K"]))
def test_o05_above_15_rows_a_row_is_that_of_the_weights_still(name: str) -> None:
    """There a quantised row may round in another way than alone; it is as near to the weights all the same."""
    rng = np.random.default_rng(15)
    cols = lengths(name)[2]
    matrix, x = random_matrix(name, 41, cols, rng), activations(rng, 40, cols)
    group = {1: 0, 256: 256}.get(FORMATS[name].block_elements, 32)
    expected = int8_activations(x, group) if group else x
    for count in (16, 33, 40):
        assert_close(product(matrix, np.ascontiguousarray(x[:count])), expected[:count], values_of(matrix), 1e-6)


@pytest.mark.parametrize("name", sparsely(["BF16", "Q5_1", "Q6_K"]))
def test_a_row_has_the_same_bits_among_any_number(name: str) -> None:
    rng = np.random.default_rng(4)
    cols = lengths(name)[2]
    matrix, x = random_matrix(name, 150, cols, rng), activations(rng, 40, cols)
    alone = np.concatenate([product(matrix, row[None]) for row in x])
    for count in (1, 7, 16, 23, 31, 40):
        assert_same_bits(product(matrix, np.ascontiguousarray(x[:count])), alone[:count])


@pytest.mark.parametrize("name", sparsely(["BF16", "Q8_0", "Q4_K"]))
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    rng = np.random.default_rng(5)
    matrix = random_matrix(name, 1111, 1024, rng)
    for count in (4, 70):  # of so many, the activations too are prepared by several threads
        x = activations(rng, count, 1024)
        expected = product(matrix, x, 1)
        for threads in (2, 3):
            assert_same_bits(product(matrix, x, threads), expected)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["BF16", "Q8_0", "Q4_K"]), st.integers(1, 70), st.integers(1, 20), st.integers(1, 15), st.data())
def test_any_shape(name: str, rows: int, blocks: int, count: int, data: st.DataObject) -> None:
    cols = blocks * FORMATS[name].block_elements * (3 if name == "BF16" else 1)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    matrix, x = random_matrix(name, rows, cols, rng), activations(rng, count, cols)
    out = product(matrix, x, 2)
    assert_close(out, x, values_of(matrix), 1e-6 if name == "BF16" else 0.02)
    assert_same_bits(out[-1:], product(matrix, x[-1:]))


def test_matrices_of_one_input_together_are_as_each_alone() -> None:
    rng = np.random.default_rng(6)
    matrices = [
        random_matrix(name, 20 + i, 512, rng) for i, name in enumerate(("Q8_0", "BF16", "Q4_K", "Q4_0", "Q8_0"))
    ]
    x = activations(rng, 5, 512)
    outs = [np.full((5, matrix.rows), np.nan, np.float32) for matrix in matrices]
    linear_many(ComputeContext(2), matrices, x, outs)
    for matrix, out in zip(matrices, outs, strict=True):
        assert_same_bits(out, product(matrix, x))


def test_what_cannot_be_written_can_be_read() -> None:
    matrix = random_matrix("Q8_0", 3, 64, np.random.default_rng(7))
    frozen = Matrix(matrix.format, 3, 64, np.frombuffer(matrix.data.tobytes(), np.uint8))
    x = activations(np.random.default_rng(8), 2, 64)
    assert_same_bits(product(frozen, x), product(matrix, x))


@pytest.mark.parametrize("name", ["BF16", "Q8_0", "Q4_K"])
def test_a_nan_or_infinity_spoils_its_own_row_and_no_other(name: str) -> None:
    rng = np.random.default_rng(9)
    matrix, x = random_matrix(name, 9, 512, rng), activations(rng, 5, 512)
    expected = product(matrix, x)
    x[1, 300], x[3, 7] = np.nan, np.inf
    out = product(matrix, x)
    assert_same_bits(out[[0, 2, 4]], expected[[0, 2, 4]])
    assert not np.isfinite(out[[1, 3]]).any()


@pytest.mark.parametrize("name", ["BF16", "Q8_0", "Q4_K"])
@pytest.mark.parametrize("factor", [0.0, 1e-38, 1e-30, 1e30])
def test_activations_of_any_magnitude(name: str, factor: float) -> None:
    rng = np.random.default_rng(10)
    matrix = random_matrix(name, 9, 512, rng)
    x = activations(rng, 2, 512)
    out = product(matrix, x * np.float32(factor))
    if factor >= 1e-30:
        assert_close(out / np.float32(factor), x, values_of(matrix), 0.01)
    else:  # what is too small to have an inverse may count as nothing
        assert np.abs(out).max() < 1e-35


def test_extreme_quants_do_not_overflow() -> None:
    rng = np.random.default_rng(11)
    matrix = random_matrix("Q8_0", 2, 256, rng)
    blocks = matrix.data.reshape(-1, 34)
    blocks[:, 2:] = np.where(np.arange(16)[:, None] < 8, 128, 127)  # −128 and 127 throughout
    for x in (np.ones((1, 256), np.float32), -np.ones((1, 256), np.float32)):
        assert_close(product(matrix, x), x, values_of(matrix), 1e-6)


def test_unfit_arguments_are_refused_with_the_numbers() -> None:
    matrix = random_matrix("Q8_0", 4, 64, np.random.default_rng(12))
    context, x, out = ComputeContext(1), np.zeros((2, 64), np.float32), np.zeros((2, 4), np.float32)
    with pytest.raises(ValueError, match=r"96 columns.*64"):
        linear(context, matrix, np.zeros((2, 96), np.float32), out)
    with pytest.raises(ValueError, match=r"\(2, 5\).*\(2, 4\)"):
        linear(context, matrix, x, np.zeros((2, 5), np.float32))
    with pytest.raises(ValueError, match="272 bytes, not 271"):
        linear(context, Matrix("Q8_0", 4, 64, matrix.data[:-1]), x, out)
    with pytest.raises(ValueError, match=r"80 columns.*32"):
        linear(context, Matrix("Q8_0", 4, 80, matrix.data), np.zeros((2, 80), np.float32), out)
    with pytest.raises(ValueError, match="'Q9_9'"):
        linear(context, Matrix("Q9_9", 4, 64, matrix.data), x, out)
    with pytest.raises(ValueError, match="float64"):
        linear(context, matrix, x.astype(np.float64), out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        linear(context, matrix, np.zeros((64, 2), np.float32).T, out)
    with pytest.raises(ValueError, match=r"with rows, not \(0, 64\)"):
        linear(context, matrix, x[:0], out[:0])
    with pytest.raises(ValueError, match=r"with rows, not \(64,\)"):
        linear(context, matrix, x[0], out)
    fixed = np.frombuffer(x.tobytes(), np.float32).reshape(x.shape)
    with pytest.raises(ValueError, match="the input must be writeable"):
        linear(context, matrix, fixed, out)
    with pytest.raises(ValueError, match="the output must be a C-contiguous float32 matrix, not float64"):
        linear_many(context, [matrix, matrix], x, [out, out.astype(np.float64)])
    with pytest.raises(ValueError, match=r"1 matrices.*2 outputs"):
        linear_many(context, [matrix], x, [out, out])
    strided = np.zeros(2 * matrix.data.size, np.uint8)[::2]
    with pytest.raises(ValueError, match="contiguous uint8"):
        linear(context, Matrix("Q8_0", 4, 64, strided), x, out)


def test_fp8_needs_the_scales_of_its_blocks() -> None:
    matrix = random_matrix("F8_E4M3", 130, 64, np.random.default_rng(13))
    context, x, out = ComputeContext(1), np.zeros((1, 64), np.float32), np.zeros((1, 130), np.float32)
    assert matrix.scale is not None
    for scale in (None, matrix.scale[:1], matrix.scale.astype(np.float64)):
        with pytest.raises(ValueError, match=r"\(2, 1\)"):
            linear(context, Matrix("F8_E4M3", 130, 64, matrix.data, scale), x, out)


def test_sizes_of_rows() -> None:
    assert (row_bytes("Q4_K", 512), row_bytes("BF16", 3), row_bytes("MXFP4", 64)) == (288, 6, 34)
    with pytest.raises(ValueError, match="0 columns"):
        row_bytes("F32", 0)


def test_scratch_memory_is_aligned_and_reused() -> None:
    context = ComputeContext(1)
    first, second = context.scratch(100), context.scratch(1 << 20)
    assert first.size == 100
    assert second.ctypes.data % 64 == 0
    assert context.scratch(1 << 20).ctypes.data == second.ctypes.data
    with pytest.raises(ValueError, match="not 0"):
        ComputeContext(0)


def test_warming_up_names_what_it_compiles() -> None:
    names = list(warm_up(ComputeContext(1), {"BF16"}))
    assert "linear BF16" in names
    assert "dequantise BF16" in names
    with pytest.raises(ValueError, match="Q9_9"):
        list(warm_up(ComputeContext(1), {"Q9_9"}))
