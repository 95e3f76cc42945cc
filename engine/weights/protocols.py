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

    A pass acquires its units in execution order and releases each when it is done with it. Matrices are valid only
    between the two: with a budget their bytes live in a ring that is refilled. One unit is held at a time.
    """

    def acquire(self, unit: str, cancel: CancelToken | None = None) -> Mapping[str, Matrix]:
        """The unit's matrices by canonical tensor name without the unit's prefix (`mlp.gate_proj.weight`); waits until
        they are in memory."""

    def pieces(self, unit: str) -> Sequence[str]:
        """What to acquire in place of `head` or `draft_head`, one after the other: each holds the rows that follow the
        one before. Mostly the unit itself; with a budget, a head larger than every layer may come in pieces."""

    def release(self, unit: str) -> None:
        """The unit's matrices are not needed any more in this pass."""

    def experts(
        self, unit: str, ids: Sequence[int], cancel: CancelToken | None = None
    ) -> Mapping[int, Mapping[str, Matrix]]:
        """Matrices `gate_proj.weight`, `up_proj.weight`, `down_proj.weight` of routed experts of an acquired unit.

        With a budget they are read in the order of `ids`, a few ahead, and taking one waits for it. The matrices of an
        expert are valid until another one is taken, or the unit is released.
        """

    def vector(self, name: str) -> FloatArray:
        """A small tensor by its full canonical name as float32, always resident: norm scales as what x is multiplied
        with, `….conv1d.weight` as [channels, taps], `….decay_rate` (exp(A_log)) in place of `….A_log`, others flat."""

    def has(self, name: str) -> bool:
        """Is there a tensor with this full canonical name?"""

    def embedding(
        self,
        ids: npt.NDArray[np.int64],
        out: FloatArray,
        *,
        table: str = "embed_tokens.weight",
        cancel: CancelToken | None = None,
    ) -> None:
        """Rows `ids` [T] of an embedding table as float32 into out [T, H]. An MTP layer may have a table of its own:
        `has("mtp.embed_tokens.weight")`."""
