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
    chains: int
    """how many chains of additions hide the latency of one: with few rows of activations, several rows of weights are
    walked together to have so many"""
    emit: Callable[[Builder, list[Value], Value, list[Value], Value], list[Value]]
    """(builder, accumulators, address of the weights, addresses of each row's activations, address of the step's scale)
    → accumulators; the operations on one accumulator must not depend on how many there are"""

    def rows_together(self, tokens: int) -> int:
        """Weight rows that a pass over `tokens` rows of activations walks together."""
        return max(1, self.chains // tokens)
