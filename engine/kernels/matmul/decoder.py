"""How the elements of a weight format become float32: the exact values that the format defines, in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.kernels.simd import Builder, Value


@dataclass(frozen=True, slots=True)
class Decoder:
    """One step along a row."""

    columns: int
    weight_bytes: int
    emit: Callable[[Builder, Value, Value], list[Value]]
    """(builder, address of the step's bytes, address of the step's scale) → vectors <16 x float>"""
