"""Who decides how many tokens to draft in the next round."""

from __future__ import annotations

from typing import Protocol

from engine.decoding.cost_aware import CostAwareLength
from engine.decoding.costs import RoundOutcome
from engine.decoding.records import Phase
from engine.options import MAX_DRAFT_TOKENS, DraftOptions


class LengthPolicy(Protocol):
    """Chooses draft lengths and learns from what they gave."""

    def choose(self, phase: Phase) -> int:
        """Draft tokens to ask for next; 0 is plain decoding. Asking twice gives the same answer."""

    def observe(self, outcome: RoundOutcome) -> None:
        """A round is over."""


class FixedLength:
    """Always the same length."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def choose(self, phase: Phase) -> int:  # noqa: ARG002 - the protocol's signature
        return self._tokens

    def observe(self, outcome: RoundOutcome) -> None:
        """Learns nothing."""


class AdaptiveLength:
    """One more after a fully accepted draft, one less after one of which nothing was accepted; at least 1."""

    def __init__(self, tokens: int) -> None:
        self._tokens = max(1, tokens)

    def choose(self, phase: Phase) -> int:  # noqa: ARG002 - the protocol's signature
        return self._tokens

    def observe(self, outcome: RoundOutcome) -> None:
        # A drafter that had less to offer than was asked, or a refusal of none, says nothing about longer drafts.
        if outcome.tested and outcome.accepted == outcome.tested and outcome.drafted >= self._tokens:
            self._tokens = min(self._tokens + 1, MAX_DRAFT_TOKENS)
        elif outcome.tested and outcome.accepted == 0:
            self._tokens = max(self._tokens - 1, 1)


def length_policy(options: DraftOptions) -> LengthPolicy:
    """The policy that `options` name."""
    if not options.enabled:
        return FixedLength(0)
    if options.length == "adaptive":
        return AdaptiveLength(options.tokens)
    if options.length == "cost-aware":
        return CostAwareLength(options.tokens)
    return FixedLength(options.tokens)
