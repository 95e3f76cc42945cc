"""Which tokens the caches of a conversation hold, and which moments of its past it can return to.

Recurrent states cannot be cut like a KV cache, so a snapshot is taken at turn boundaries. A new prompt keeps the
longest common prefix with the tokens in the caches, as far as a snapshot (or the present) allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.state import TrunkSnapshot


@dataclass(frozen=True, slots=True)
class TurnCheckpoint:
    """The state after the first `position` tokens, and the hidden state of the last of them [1, H] for the drafter."""

    position: int
    snapshot: TrunkSnapshot
    last_hidden: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.snapshot.nbytes + self.last_hidden.nbytes


class PrefixCache:
    """Tokens in the caches, and checkpoints at positions inside them, within a budget of bytes."""

    def __init__(self, budget: int = 512 << 20) -> None:
        self.tokens: list[int] = []
        """Their keys (`engine.prompt.Prompt.keys`): ids, but for pictures."""
        self.checkpoints: list[TurnCheckpoint] = []
        self._budget = budget

    def clone(self) -> PrefixCache:
        """An independent copy; checkpoints never change and are shared."""
        other = PrefixCache(self._budget)
        other.tokens, other.checkpoints = list(self.tokens), list(self.checkpoints)
        return other

    def common(self, tokens: Sequence[int]) -> int:
        """Length of the longest common prefix of `tokens` and what the caches hold."""
        pairs = zip(self.tokens, tokens, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(self.tokens), len(tokens)))

    def latest(self, position: int) -> TurnCheckpoint | None:
        """The last checkpoint at or before `position`."""
        return max((c for c in self.checkpoints if c.position <= position), key=lambda c: c.position, default=None)

    def add(self, checkpoint: TurnCheckpoint) -> None:
        """Remember a checkpoint; the oldest ones go when the budget is used up, but one always stays."""
        self.checkpoints = [c for c in self.checkpoints if c.position != checkpoint.position] + [checkpoint]
        while len(self.checkpoints) > 1 and self.nbytes > self._budget:
            self.checkpoints.pop(0)

    def truncate(self, position: int) -> None:
        """Tokens from `position` on are gone, and so are the checkpoints behind it."""
        del self.tokens[position:]
        self.checkpoints = [c for c in self.checkpoints if c.position <= position]

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.checkpoints)
