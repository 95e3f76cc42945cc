"""What all layers of one pass share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.context import ComputeContext
from engine.model.workspace import Workspace

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
