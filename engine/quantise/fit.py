"""The search for a group's factor (and offset): the least-squares fit over several roundings, the best one kept.

Every candidate factor rounds the group to whole numbers q; for these q the factor that fits best has a closed form. The
error is weighted, so that large weights, which move a product most, are met best.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

FloatArray = npt.NDArray[np.float32]

IQ4_CODES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The sixteen values of IQ4_NL and IQ4_XS."""
_NEAREST = np.abs(np.arange(-255.5, 256, dtype=np.float32)[:, None] / 2 - IQ4_CODES).argmin(axis=1).astype(np.uint8)
"""Place of the nearest of `IQ4_CODES`, by half units from −128 on: no two codes meet between halves."""
_F = np.float32


@kernel("void(float32[:, ::1], float32, float32[::1], float32[::1])")
def fit_affine(values, levels, scales, minimums):  # type: ignore[no-untyped-def]
    """Per group (a row of values): x ≈ scale * q − minimum with q in 0…levels and minimum ≥ 0."""
    count, size = values.shape
    for i in range(count):
        x = values[i]
        low, high, square = _F(0), x[0], _F(0)
        for j in range(size):
            low, high = min(low, x[j]), max(high, x[j])
            square += x[j] * x[j]
        scales[i], minimums[i] = _F(0), -low
        if high <= low:
            continue
        ordinary = _F(math.sqrt(square / size))
        least = _F(np.inf)
        for step in range(-10, 11):
            inverse = (levels + _F(0.1) * _F(step)) / (high - low)
            w_sum = x_sum = q_sum = qq_sum = xq_sum = xx_sum = _F(0)
            for j in range(size):
                w = ordinary + abs(x[j])
                q = min(_F(np.int32(inverse * (x[j] - low) + _F(0.5))), levels)
                w_sum += w
                x_sum += w * x[j]
                q_sum += w * q
                qq_sum += w * q * q
                xq_sum += w * x[j] * q
                xx_sum += w * x[j] * x[j]
            determinant = w_sum * qq_sum - q_sum * q_sum
            scale, offset = xq_sum / qq_sum, _F(0)  # where all q are the same, nothing else is determined
            if determinant > 0:
                free = (qq_sum * x_sum - q_sum * xq_sum) / determinant
                if free <= 0:
                    scale, offset = (w_sum * xq_sum - x_sum * q_sum) / determinant, free
            error = (
                xx_sum - 2 * (scale * xq_sum + offset * x_sum)
                + scale * scale * qq_sum + 2 * scale * offset * q_sum + offset * offset * w_sum
            )  # fmt: skip
            if error < least:
                least, scales[i], minimums[i] = error, scale, -offset


@kernel("void(float32[:, ::1], float32, float32[::1])")
def fit_symmetric(values, bound, scales):  # type: ignore[no-untyped-def]
    """Per group: x ≈ scale * q with q in −bound…bound − 1. The scale's sign puts the largest value on the side that
    reaches further."""
    count, size = values.shape
    for i in range(count):
        x = values[i]
        largest = _F(0)
        for j in range(size):
            if abs(x[j]) > abs(largest):
                largest = x[j]
        scales[i] = _F(0)
        if largest == 0:
            continue
        most = _F(-1)
        for step in range(-9, 10):
            inverse = -(bound + _F(0.1) * _F(step)) / largest
            xq_sum = qq_sum = _F(0)
            for j in range(size):
                q = min(max(_F(np.rint(inverse * x[j])), -bound), bound - _F(1))
                w = x[j] * x[j]
                xq_sum += w * x[j] * q
                qq_sum += w * q * q
            if qq_sum > 0 and xq_sum * xq_sum > most * qq_sum:
                scales[i] = xq_sum / qq_sum
                most = scales[i] * xq_sum


@kernel("void(float32[:, ::1], float32[::1], float32[::1])")
def fit_codes(values, rounded, scales):  # type: ignore[no-untyped-def]
    """Per group: x ≈ scale * a code. `rounded` holds the code nearest to each half unit from −128 on."""
    count, size = values.shape
    for i in range(count):
        x = values[i]
        largest = _F(0)
        for j in range(size):
            if abs(x[j]) > abs(largest):
                largest = x[j]
        scales[i] = _F(0)
        if largest == 0:
            continue
        most = _F(-1)
        for step in range(-8, 9):
            inverse = (rounded[0] + _F(step)) / largest
            xq_sum = qq_sum = _F(0)
            for j in range(size):
                half = np.int32(_F(2) * min(max(inverse * x[j], _F(-128)), _F(127)) + _F(256))
                code = rounded[half]
                w = x[j] * x[j]
                xq_sum += w * x[j] * code
                qq_sum += w * code * code
            if qq_sum > 0 and xq_sum * xq_sum > most * qq_sum:
                scales[i] = xq_sum / qq_sum
                most = scales[i] * xq_sum


def affine(groups: FloatArray, levels: int) -> tuple[FloatArray, FloatArray]:
    """(scales, minimums) of groups [n, size]; see `fit_affine`."""
    scales, minimums = np.empty(len(groups), np.float32), np.empty(len(groups), np.float32)
    fit_affine(groups, _F(levels), scales, minimums)
    return scales, minimums


def symmetric(groups: FloatArray, bound: int) -> FloatArray:
    """Scales of groups [n, size]; see `fit_symmetric`."""
    scales = np.empty(len(groups), np.float32)
    fit_symmetric(groups, _F(bound), scales)
    return scales


def codebook(groups: FloatArray) -> FloatArray:
    """Scales of groups [n, size] for `IQ4_CODES`."""
    scales = np.empty(len(groups), np.float32)
    fit_codes(groups, IQ4_CODES[_NEAREST], scales)
    return scales


def nearest_codes(scaled: FloatArray) -> npt.NDArray[np.uint8]:
    """Which of `IQ4_CODES` is nearest to each number."""
    return np.take(_NEAREST, (2 * np.clip(scaled, -128, 127) + 256).astype(np.int32))
