"""A distribution over tokens, exactly as it is sampled from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.decoding.protocols import IntArray

DoubleArray = npt.NDArray[np.float64]

_BLOCK = 1024  # tokens summed together, so that drawing one needs no array as long as the vocabulary


@dataclass(frozen=True)
class Distribution:
    """Tokens that can come, with their probabilities; every other token has probability 0."""

    ids: IntArray
    """[n], ascending."""
    probabilities: DoubleArray
    """[n], not negative; they sum to 1 up to rounding."""

    def probability(self, token: int) -> float:
        """The probability of `token`; 0 if it cannot come."""
        slot = int(self.ids.searchsorted(token))
        if slot == len(self.ids) or self.ids[slot] != token:
            return 0.0
        return float(self.probabilities[slot])

    def sample(self, uniform: float) -> int:
        """The token at `uniform` (in [0, 1)) of the cumulative distribution. Never one of probability 0."""
        ends = self._block_ends
        wanted = uniform * ends[-1]
        block = min(int(ends.searchsorted(wanted, side="right")), len(ends) - 1)
        start = block * _BLOCK
        inside = np.cumsum(self.probabilities[start : start + _BLOCK])
        slot = int(inside.searchsorted(wanted - (ends[block - 1] if block else 0.0), side="right"))
        if slot == len(inside):  # rounding took it past the block: the last token that can come before there
            slot = int(np.flatnonzero(self.probabilities[: start + slot])[-1]) - start
        return int(self.ids[start + slot])

    def residual(self, draft: Distribution | None, token: int) -> Distribution:
        """What to draw from after `token`, drawn from `draft` (None: certain), was refused: max(0, p − q), normalised.

        That is empty only if the draft covers the whole target, where rounding alone can refuse; then p itself.
        """
        if draft is None:
            excess = np.where(self.ids == token, 0.0, self.probabilities)
        else:
            excess = np.maximum(self.probabilities - draft.at(self.ids), 0.0)
        total = float(excess.sum())
        if total <= 0.0:
            return self
        kept = excess > 0
        return Distribution(self.ids[kept], excess[kept] / total)

    @cached_property
    def _block_ends(self) -> DoubleArray:
        """The cumulative distribution after each block of tokens."""
        return np.cumsum(np.add.reduceat(self.probabilities, np.arange(0, len(self.ids), _BLOCK)))

    def at(self, ids: IntArray) -> DoubleArray:
        """The probabilities of `ids` [m]."""
        if len(ids) == len(self.ids) and (ids is self.ids or np.array_equal(ids, self.ids)):
            return self.probabilities
        slots = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[slots] == ids, self.probabilities[slots], 0.0)

    def top(self, count: int) -> tuple[tuple[int, float], ...]:
        """The `count` most likely (token, probability), descending, ties to the lower id."""
        order = np.argsort(-self.probabilities, kind="stable")[:count]
        return tuple((int(self.ids[i]), float(self.probabilities[i])) for i in order)
