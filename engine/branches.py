"""Branches of a conversation: the caches of one that was left are set aside, for a person who comes back to it.

Going back to an earlier message overwrites what the caches held from there on. If that is much, a copy is kept within a
budget of bytes; whoever returns gets it by exchange, without copying and without reading anything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.decoding.drafters.mtp import MtpDrafter
from engine.model.mtp import MtpSession
from engine.model.target import TargetSession
from engine.prefix_cache import PrefixCache

WORTH_KEEPING = 64
"""Tokens that a branch must be ahead of the alternative."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The caches of trunk and draft layer, and the tokens that they stand for."""

    target: TargetSession
    prefix: PrefixCache
    tokens: list[int]
    """Ids in the caches, where the prefix has keys."""
    mtp_model: MtpSession | None
    mtp: MtpDrafter | None

    def clone(self) -> Branch:
        """An independent copy."""
        mtp_model = None if self.mtp_model is None else self.mtp_model.clone()
        mtp = None if self.mtp is None or mtp_model is None else self.mtp.clone(mtp_model)
        return Branch(self.target.clone(), self.prefix.clone(), list(self.tokens), mtp_model, mtp)

    def kept(self, keys: Sequence[int], with_mtp: bool) -> int:
        """How many tokens of a prompt need not be read again; its last one always has to be."""
        common = min(self.prefix.common(keys), len(keys) - 1)
        if with_mtp and self.mtp is not None:
            common = min(common, self.mtp.position)  # it slept through replies without it
        if common == self.target.position:
            return common
        checkpoint = self.prefix.latest(common)
        return 0 if checkpoint is None else checkpoint.position

    @property
    def nbytes(self) -> int:
        draft = 0 if self.mtp_model is None else self.mtp_model.nbytes
        return self.target.state.nbytes + draft + self.prefix.nbytes


class BranchShelf:
    """Branches set aside, the one used last at the end."""

    def __init__(self, budget: int = 1 << 30) -> None:
        self._budget = budget
        self._branches: list[Branch] = []

    def choose(self, current: Branch, keys: Sequence[int], with_mtp: bool) -> Branch:
        """The branch to answer a prompt with: `current`, or one from the shelf that spares much reading. What would be
        lost by that is set aside."""
        kept = current.kept(keys, with_mtp)
        best = max(self._branches, key=lambda branch: branch.kept(keys, with_mtp), default=None)
        if best is not None and best.kept(keys, with_mtp) >= kept + WORTH_KEEPING:
            self._branches.remove(best)
            self._put(current)
            return best
        if current.target.position >= kept + WORTH_KEEPING and current.nbytes <= self._budget:
            self._put(current.clone())
        return current

    def _put(self, branch: Branch) -> None:
        self._branches.append(branch)
        while self._branches and self.nbytes > self._budget:
            self._branches.pop(0)

    @property
    def nbytes(self) -> int:
        """Memory of all of them."""
        return sum(branch.nbytes for branch in self._branches)

    def __len__(self) -> int:
        return len(self._branches)
