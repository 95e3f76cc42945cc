"""A weight matrix as the kernels see it: bytes in the layout of the file, with the name of that layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """`rows` output features × `cols` input features.

    `data` is uint8 [rows * row_bytes], rows one after the other, never written; `format` names the layout as ggml does
    (`BF16`, `F16`, `F32`, `Q8_0`, `Q4_K`, …) plus `F8_E4M3` (safetensors FP8, which has `scale`).
    """

    format: str
    rows: int
    cols: int
    data: npt.NDArray[np.uint8]
    scale: npt.NDArray[np.float32] | None = None
    """F8_E4M3 only: one factor per 128 × 128 block [ceil(rows / 128), ceil(cols / 128)]."""
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What kernels have worked out of this matrix once (addresses, sizes); no part of its value."""
