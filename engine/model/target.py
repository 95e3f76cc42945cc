"""The trunk with the caches of one conversation: `engine.decoding.protocols.TargetModel`."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cancel import CancelToken
from engine.model.forward_pass import FloatArray
from engine.model.state import TrunkSnapshot, TrunkState
from engine.model.trunk import Trunk


class TargetSession:
    """Reads tokens, takes the last ones back exactly, and can return to snapshots of its own past."""

    def __init__(self, trunk: Trunk, vocabulary: int, context: int, state: TrunkState | None = None) -> None:
        self._trunk = trunk
        self._vocabulary = vocabulary
        self._context = context
        self._state = state or TrunkState(trunk.config, context)

    @property
    def position(self) -> int:
        return self._state.position

    @property
    def vocabulary(self) -> int:
        return self._vocabulary

    @property
    def context(self) -> int:
        return self._context

    @property
    def state(self) -> TrunkState:
        return self._state

    def forward(self, tokens: Sequence[int], cancel: CancelToken | None = None) -> FloatArray:
        return self._trunk.forward(self._state, tokens, cancel)

    def logits(self, hidden: FloatArray) -> FloatArray:
        return self._trunk.logits(hidden)[:, : self._vocabulary]

    def rollback(self, position: int) -> None:
        self._trunk.rollback(self._state, position)

    def snapshot(self) -> TrunkSnapshot:
        return self._state.snapshot()

    def restore(self, snapshot: TrunkSnapshot) -> None:
        self._state.restore(snapshot)

    def reset(self) -> None:
        self._state.reset()

    def clone(self) -> TargetSession:
        """An independent session with the same past."""
        return TargetSession(self._trunk, self._vocabulary, self._context, self._state.clone())
