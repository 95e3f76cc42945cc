"""What the model asks of the weights, resident or streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engine.kernels.matrix import Matrix

if TYPE_CHECKING:
    from engine.cancel import CancelToken

FloatArray = npt.NDArray[np.float32]


class WeightSource(Protocol):
    """Hands out weights by unit. Unit names: `layers.N`, `head`, `mtp`, `draft_head`.

    A pass acquires its units in execution order and releases each when it is done with it. Matrices are valid only between
    the two: with a budget their bytes live in a ring that is refilled.
    """

    def acquire(self, unit: str, cancel: CancelToken | None = None) -> Mapping[str, Matrix]:
        """The unit's matrices by canonical tensor name without the unit's prefix (`mlp.gate_proj.weight`); waits until
        they are in memory."""

    def release(self, unit: str) -> None:
        """The unit's matrices are not needed any more in this pass."""

    def experts(
        self, unit: str, ids: Sequence[int], cancel: CancelToken | None = None
    ) -> Mapping[int, Mapping[str, Matrix]]:
        """Matrices `gate_proj`, `up_proj`, `down_proj` (or `gate_up_proj`) of the routed experts `ids` of an acquired unit."""

    def vector(self, name: str) -> FloatArray:
        """A small tensor (norm, bias, A_log, conv1d …) by its full canonical name, converted to float32; always resident."""

    def has(self, name: str) -> bool:
        """Is there a tensor with this full canonical name?"""

    def embedding(self, ids: npt.NDArray[np.int64], out: FloatArray) -> None:
        """Rows `ids` [T] of the embedding table as float32 into out [T, H]."""
