"""A product that is planned once says what a product planned anew says, whatever has changed in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from engine.kernels.context import ComputeContext
from engine.kernels.matmul import linear_again, linear_many
from engine.kernels.matmul.repeated import MOST_ROWS
from engine.kernels.matrix import Matrix

RANDOM = np.random.default_rng(5)
K = 512

Floats = npt.NDArray[np.float32]


def _q8_0(rows: int) -> Matrix:
    blocks = RANDOM.integers(0, 256, (rows, K // 32, 34), np.uint8)
    blocks[:, :, :2] = np.full((rows, K // 32, 1), 0.01, np.float16).view(np.uint8)
    return Matrix("Q8_0", rows, K, blocks.reshape(-1))


def _f32(rows: int) -> Matrix:
    return Matrix("F32", rows, K, RANDOM.standard_normal(rows * K).astype(np.float32).view(np.uint8))


def _input(rows: int) -> Floats:
    return RANDOM.standard_normal((rows, K)).astype(np.float32)


def _zeros(rows: int, columns: int) -> Floats:
    return np.zeros((rows, columns), np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 4, MOST_ROWS, MOST_ROWS + 1])
def test_the_bits_are_those_of_a_product_planned_anew(rows: int, threads: int) -> None:
    matrices = [_q8_0(2048), _f32(16), _q8_0(40)]
    context, x = ComputeContext(threads), _input(rows)
    outs = [_zeros(rows, m.rows) for m in matrices]
    expected = [np.zeros_like(out) for out in outs]
    for turn in range(3):
        x[:] = _input(rows)  # the same array with other numbers
        linear_again(context, matrices, x, outs)
        linear_many(ComputeContext(1), matrices, x, expected)
        for out, right in zip(outs, expected, strict=True):
            assert out.tobytes() == right.tobytes(), turn
            out[:] = 0


def test_other_arrays_in_place_of_known_ones_are_noticed() -> None:
    matrix, context = _q8_0(64), ComputeContext(1)
    for _ in range(3):
        x, out, right = _input(2), _zeros(2, 64), _zeros(2, 64)
        linear_again(context, [matrix], x, [out])
        linear_many(context, [matrix], x, [right])
        assert out.any()
        assert out.tobytes() == right.tobytes()


def test_another_matrix_behind_the_first_is_noticed() -> None:
    first, context, x = _q8_0(64), ComputeContext(1), _input(1)
    outs, right = [_zeros(1, 64), _zeros(1, 32)], _zeros(1, 32)
    for _ in range(2):
        second = _q8_0(32)
        linear_again(context, [first, second], x, outs)
        linear_many(context, [second], x, [right])
        assert outs[1].tobytes() == right.tobytes()


def test_scratch_memory_that_moves_is_noticed() -> None:
    matrix, context, x = _q8_0(64), ComputeContext(1), _input(1)
    out, right = _zeros(1, 64), _zeros(1, 64)
    linear_again(context, [matrix], x, [out])
    product, moves = matrix.memo["again", 1], context.moves
    context.scratch(1 << 22)[:] = 255
    assert context.moves == moves + 1
    linear_again(context, [matrix], x, [out])
    linear_many(context, [matrix], x, [right])
    assert out.tobytes() == right.tobytes()
    assert matrix.memo["again", 1] is not product


def test_the_same_arrays_are_planned_once_and_long_inputs_are_not_kept() -> None:
    matrix, context = _q8_0(64), ComputeContext(1)
    x, out = _input(3), _zeros(3, 64)
    linear_again(context, [matrix], x, [out])
    product = matrix.memo["again", 3]
    linear_again(context, [matrix], x, [out])
    assert matrix.memo["again", 3] is product
    linear_again(context, [matrix], _input(MOST_ROWS + 1), [_zeros(MOST_ROWS + 1, 64)])
    assert ("again", MOST_ROWS + 1) not in matrix.memo


def test_arrays_that_do_not_fit_are_refused() -> None:
    matrix, context = _q8_0(64), ComputeContext(1)
    with pytest.raises(ValueError, match="output"):
        linear_again(context, [matrix], _input(1), [_zeros(1, 63)])
    with pytest.raises(ValueError, match="float32"):
        linear_again(context, [matrix], _input(1), [np.zeros((1, 64), np.float64)])
    with pytest.raises(ValueError, match="outputs"):
        linear_again(context, [matrix], _input(1), [])
