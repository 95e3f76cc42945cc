"""What share of drafts is accepted, as far as recent rounds tell."""

from __future__ import annotations

from engine.options import MAX_DRAFT_TOKENS

_MEMORY = 0.98
"""What an observation is worth after the next one at the same place: some 50 count."""
_PRIOR_WEIGHT = 2.0
"""How many observations the prior is worth (Laplace's rule, with a prior of a half)."""


class AcceptanceEstimate:
    """Acceptance by position in the draft, given that everything before was accepted; fades as new rounds come."""

    def __init__(self, most: int = MAX_DRAFT_TOKENS, prior: float = 0.5) -> None:
        """`prior`: acceptance of the first position while nothing is known; further ones lean on the one before."""
        self._prior = prior
        self._tried = [0.0] * most
        self._accepted = [0.0] * most
        self.survival: list[float] = []
        """By length k = 0 … most: the chance that k drafts are all accepted."""
        self.expected_tokens: list[float] = []
        """By length: tokens that a round gives, the model's own included: 1 + a_1 + a_1 a_2 + …"""
        self._estimate()

    def add(self, tested: int, accepted: int) -> None:
        """`tested` drafts of a round were judged, the first `accepted` of them accepted."""
        for i in range(min(tested, len(self._tried))):
            self._tried[i] = self._tried[i] * _MEMORY + 1
            self._accepted[i] = self._accepted[i] * _MEMORY + (i < accepted)
        self._estimate()

    def gain(self, count: int, start: int = 0) -> float:
        """Expected accepted drafts at positions `start` … `count` − 1."""
        return self.expected_tokens[count] - self.expected_tokens[start]

    def _estimate(self) -> None:
        share = self._prior
        self.survival, self.expected_tokens = [1.0], [1.0]
        for tried, accepted in zip(self._tried, self._accepted, strict=True):
            share = (accepted + _PRIOR_WEIGHT * share) / (tried + _PRIOR_WEIGHT)
            self.survival.append(self.survival[-1] * share)
            self.expected_tokens.append(self.expected_tokens[-1] + self.survival[-1])
