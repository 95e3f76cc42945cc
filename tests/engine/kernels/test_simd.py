"""The vector helpers, each compiled alone and held against the same thing said in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from engine.kernels import simd
from engine.kernels.simd import F32, I8, I16, I32, Builder, Value, load, store, vector

Emitter = Callable[..., Value]


def compiled(emit: Emitter, *kinds: Any) -> Callable[..., np.ndarray]:
    """A function of arrays that loads each as one vector of the given type, and returns what `emit` makes of them."""

    @intrinsic
    def apply(_typing, addresses, out):  # type: ignore[no-untyped-def]
        def generate(context, builder, _signature, args):  # type: ignore[no-untyped-def]
            values = []
            for i, kind in enumerate(kinds):
                pointer = builder.extract_value(args[0], i)
                values.append(load(builder, pointer, kind))
            store(builder, emit(builder, *values), args[1])
            return context.get_dummy_value()

        return types.void(types.UniTuple(types.intp, len(kinds)), types.intp), generate

    @njit
    def run(addresses, out):  # type: ignore[no-untyped-def]
        apply(addresses, out)

    def call(*arrays: np.ndarray, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        result = np.zeros(shape, dtype)
        run(tuple(array.ctypes.data for array in arrays), result.ctypes.data)
        return result

    return call


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_products_of_bytes_are_summed_in_pairs(rng: np.random.Generator, lanes: int) -> None:
    unsigned = rng.integers(0, 129, lanes).astype(np.uint8)
    signed = rng.integers(-127, 128, lanes).astype(np.int8)
    unsigned[:2], signed[:2] = 128, -127  # the largest sum that callers may make
    out = compiled(simd.multiply_bytes, vector(I8, lanes), vector(I8, lanes))(
        unsigned, signed, shape=(lanes // 2,), dtype=np.int16
    )
    products = unsigned.astype(np.int64) * signed.astype(np.int64)
    np.testing.assert_array_equal(out, products.reshape(-1, 2).sum(1))


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_products_of_words_are_summed_in_pairs(rng: np.random.Generator, lanes: int) -> None:
    x, y = rng.integers(-32768, 32768, (2, lanes)).astype(np.int16)
    out = compiled(simd.multiply_words, vector(I16, lanes), vector(I16, lanes))(
        x, y, shape=(lanes // 2,), dtype=np.int32
    )
    np.testing.assert_array_equal(out, (x.astype(np.int64) * y).reshape(-1, 2).sum(1))


def test_dot_products_of_bytes_are_added_to_what_is_there(rng: np.random.Generator) -> None:
    total = rng.integers(-1000, 1000, 16).astype(np.int32)
    unsigned, signed = rng.integers(0, 128, 64).astype(np.uint8), rng.integers(-127, 128, 64).astype(np.int8)
    out = compiled(simd.dot_bytes, vector(I32, 16), vector(I8, 64), vector(I8, 64))(
        total, unsigned, signed, shape=(16,), dtype=np.int32
    )
    np.testing.assert_array_equal(out, total + (unsigned.astype(np.int64) * signed).reshape(-1, 4).sum(1))


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_bytes_are_looked_up(rng: np.random.Generator, lanes: int) -> None:
    values = tuple(int(value) for value in rng.integers(-128, 128, 16))
    indices = rng.integers(0, 16, lanes).astype(np.uint8)
    lookup = compiled(lambda b, index: simd.lookup_bytes(b, values, index), vector(I8, lanes))
    np.testing.assert_array_equal(lookup(indices, shape=(lanes,), dtype=np.int8), np.array(values)[indices])


def test_signs_are_applied_and_taken_off(rng: np.random.Generator) -> None:
    by, value = rng.integers(-127, 128, (2, 64)).astype(np.int8)
    by[0] = -128
    by[by == 0] = 1  # what a zero selects is left open
    pair = vector(I8, 64), vector(I8, 64)
    out = compiled(simd.select_signed, *pair)(by, value, shape=(64,), dtype=np.int8)
    np.testing.assert_array_equal(out, np.sign(by) * value)
    magnitude = compiled(simd.absolute, vector(I8, 64))(by, shape=(64,), dtype=np.uint8)
    np.testing.assert_array_equal(magnitude, np.abs(by.astype(np.int64)))


def test_lanes_are_added_by_a_fixed_tree(rng: np.random.Generator) -> None:
    values = rng.standard_normal(16, dtype=np.float32)
    expected = values
    while len(expected) > 1:
        expected = expected[: len(expected) // 2] + expected[len(expected) // 2 :]
    out = compiled(simd.sum_of_lanes, vector(F32, 16))(values, shape=(1,), dtype=np.float32)
    assert out.view(np.int32) == expected.view(np.int32)


def test_multiplying_and_adding_rounds_once() -> None:
    x = np.full(16, 1 + 2.0**-12, np.float32)
    z = np.full(16, -1, np.float32)
    out = compiled(simd.fma, *[vector(F32, 16)] * 3)(x, x, z, shape=(16,), dtype=np.float32)
    np.testing.assert_array_equal(out, np.float32(2.0**-11 + 2.0**-24))


@pytest.mark.parametrize("from_memory", [False, True])
def test_a_lane_is_spread(rng: np.random.Generator, from_memory: bool) -> None:
    def emit(b: Builder, value: Value) -> Value:
        memory = simd.unknown_buffer(b, 32) if from_memory else None
        spread = simd.spread_lanes(b, value, memory)
        return simd.concatenate(b, [spread(5, 8), spread(2, 8)])

    values = rng.standard_normal(8, dtype=np.float32)
    out = compiled(emit, vector(F32, 8))(values, shape=(16,), dtype=np.float32)
    np.testing.assert_array_equal(out, values[[5] * 8 + [2] * 8])


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_vectors_are_split_and_joined(rng: np.random.Generator, lanes: int) -> None:
    def emit(b: Builder, value: Value) -> Value:
        return simd.concatenate(b, list(reversed(simd.split(b, simd.opaque(b, value), 4))))

    values = rng.integers(-128, 128, lanes).astype(np.int8)
    out = compiled(emit, vector(I8, lanes))(values, shape=(lanes,), dtype=np.int8)
    np.testing.assert_array_equal(out, values.reshape(4, -1)[::-1].reshape(-1))
