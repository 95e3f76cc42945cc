"""What a row kernel needs to know of a weight format: how one step along the row adds to the accumulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.kernels.simd import Builder, Value

LANES = 16
"""Lanes of an accumulator: one AVX-512 register, two of AVX2, four of NEON; it decides the order of the sum."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One step along a row of weights, times several rows of activations."""

    columns: int
    weight_bytes: int
    activation_bytes: int
    streams: tuple[tuple[int, int], ...]
    """(activation rows, weight rows) that one pass takes together, most activation rows first, ending with 1: several
    weight rows hide the latency of the one chain of additions that a row has"""
    emit: Callable[[Builder, list[Value], Value, list[Value], Value], list[Value]]
    """(builder, accumulators, address of the weights, addresses of each row's activations, address of the step's scale)
    → accumulators; the operations on one accumulator must not depend on how many there are"""
