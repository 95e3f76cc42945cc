"""What all layers of one pass share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.kernels.rope import rope_tables
from engine.model.positions import VisionSpan, rope_positions
from engine.model.workspace import Workspace

if TYPE_CHECKING:
    from engine.files.config import ModelConfig

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """One pass of `rows` tokens through some layers, from `position` on."""

    context: ComputeContext
    workspace: Workspace
    rows: int
    position: int
    cos: FloatArray
    """Rotary tables [rows, rotary_dim / 2]"""
    sin: FloatArray

    def array(self, name: str, columns: int) -> FloatArray:
        """A work buffer [rows, columns]."""
        return self.workspace.array(name, self.rows, columns)


def forward_pass(
    config: ModelConfig,
    context: ComputeContext,
    workspace: Workspace,
    spans: Sequence[VisionSpan],
    position: int,
    rows: int,
) -> ForwardPass:
    """A pass of `rows` tokens from `position` on, with the rotary tables for where tokens and pictures stand."""
    positions = rope_positions(spans, position, rows)
    sections = None if positions.ndim == 1 else config.mrope_sections
    cos, sin = rope_tables(positions, config.rotary_dim, config.rope_theta, sections)
    return ForwardPass(context, workspace, rows, position, np.ascontiguousarray(cos), np.ascontiguousarray(sin))
