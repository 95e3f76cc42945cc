"""A machine on paper: what a draft-length policy earns when times and acceptance are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.decoding.costs import RoundOutcome
from engine.decoding.draft_length import LengthPolicy

Costs = Callable[[int], float]  # verification seconds by draft length


def expected_tokens(acceptance: Sequence[float], length: int) -> float:
    return 1.0 + float(np.cumprod(acceptance[:length]).sum())


def rate(costs: Costs, step: float, acceptance: Sequence[float], length: int) -> float:
    """Tokens per second of a fixed length."""
    return expected_tokens(acceptance, length) / (costs(length) + length * step)


def best_rate(costs: Costs, step: float, acceptance: Sequence[float], most: int = 14) -> float:
    return max(rate(costs, step, acceptance, length) for length in range(most + 1))


class Machine:
    """Runs a policy for a number of tokens and keeps the books."""

    def __init__(self, policy: LengthPolicy, seed: int = 0, noise: float = 0.03) -> None:
        self.policy, self.noise = policy, noise
        self.random = np.random.default_rng(seed)
        self.lengths: list[int] = []

    def run(self, tokens: int, costs: Costs, step: float, acceptance: Sequence[float], phase: str = "answer") -> float:
        """Tokens per second of the lengths chosen over the next `tokens` tokens, free of the luck of the draw."""
        said, seconds = 0.0, 0.0
        while said < tokens:
            length = self.policy.choose(phase)
            assert length == self.policy.choose(phase), "asking twice gave two answers"
            accepted = 0
            while accepted < length and self.random.random() < acceptance[accepted]:
                accepted += 1
            tested = min(accepted + 1, length)
            draft_s = length * step * self._jitter()
            verify_s = costs(length) * self._jitter()
            self.policy.observe(RoundOutcome(phase, length, tested, accepted, draft_s, verify_s))
            self.lengths.append(length)
            said += expected_tokens(acceptance, length)
            seconds += costs(length) + length * step
        return said / seconds

    def _jitter(self) -> float:
        hiccup = 3.0 if self.random.random() < 0.01 else 1.0
        return hiccup * float(np.exp(self.random.normal(0, self.noise)))
