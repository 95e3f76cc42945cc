"""The draft length with the most expected tokens per second.

With acceptance a_i at position i (given that everything before was accepted), a round of k drafts gives
E(k) = 1 + a_1 + a_1 a_2 + … + a_1 … a_k tokens and takes V(k) + k · step seconds. Both sides are measured. Length 0,
plain decoding, competes like any other.

A length that is not used is not measured, so what is known of it grows old. A small share of the time goes into probes:
rounds at another length, chosen because it might be better. A probe that pays gives back what it cost.
"""

from __future__ import annotations

from collections import deque

from engine.decoding.acceptance import AcceptanceEstimate
from engine.decoding.costs import RoundOutcome
from engine.decoding.records import Phase
from engine.decoding.round_times import VerifyTimes
from engine.options import MAX_DRAFT_TOKENS

PROBE_SHARE = 0.0125
"""Most of the time that probes may lose."""
_CREDIT = 3.0
"""Rounds' worth of time that probes may lose before they have earned it."""
_MOST_SAVED = 20.0
"""Rounds' worth of time that the account of probes may hold."""


class CostAwareLength:
    """`LengthPolicy` by measured times and acceptance. Thinking and answering are counted apart; times are shared."""

    def __init__(self, start: int = 3, most: int = MAX_DRAFT_TOKENS) -> None:
        """`start`: the length of the first rounds. `most`: the longest."""
        self._start = min(start, most)
        self._lengths = range(most + 1)
        self._times = VerifyTimes(most)
        self._steps: deque[float] = deque(maxlen=9)  # seconds per draft token, the last few
        self._step = 0.0  # their median
        self._acceptance: dict[Phase, AcceptanceEstimate] = {
            "think": AcceptanceEstimate(most),
            "answer": AcceptanceEstimate(most),
        }
        self._account = 0.0  # seconds that probes may lose

    def choose(self, phase: Phase) -> int:
        """See `LengthPolicy.choose`."""
        rates = self._rates(phase)
        if not rates:
            return self._start
        best = _best(rates)
        probe = self._probe(phase, best, rates)
        return best if probe is None else probe

    def observe(self, outcome: RoundOutcome) -> None:
        """See `LengthPolicy.observe`."""
        rates = self._rates(outcome.phase)
        if rates:
            self._book(outcome, _best(rates), max(rates.values()))
        else:
            self._account = _CREDIT * (outcome.draft_s + outcome.verify_s)
        self._times.add(outcome.drafted, outcome.verify_s)
        if outcome.drafted:
            self._steps.append(outcome.draft_s / outcome.drafted)
            self._step = sorted(self._steps)[len(self._steps) // 2]
            self._acceptance[outcome.phase].add(outcome.tested, outcome.accepted)

    def _rates(self, phase: Phase) -> dict[int, float]:
        """Expected tokens per second by length, where anything can be said."""
        tokens = self._acceptance[phase].expected_tokens
        times = self._times.expected
        return {n: tokens[n] / self._round_seconds(n, times[n]) for n in self._lengths if times[n] is not None}

    def _probe(self, phase: Phase, best: int, rates: dict[int, float]) -> int | None:
        """A length worth a look that the account can pay for: the most promising of those that might be better, or,
        while plain decoding is best, the least bad of the others, lest a change for the better go unseen."""
        tokens = self._acceptance[phase].expected_tokens
        hopes: dict[int, float] = {}
        for length in rates:
            least = self._times.least[length]
            if length != best and least is not None and self._worth_a_look(length):
                hopes[length] = tokens[length] / self._round_seconds(length, least)
        promising = sorted((n for n in hopes if hopes[n] > rates[best]), key=lambda n: -hopes[n])
        if best == 0 and len(rates) > 1:
            promising.append(max((n for n in rates if n), key=lambda n: rates[n]))
        for length in promising:
            loss = tokens[length] / rates[length] - tokens[length] / rates[best]
            if loss <= self._account:
                return length
        return None

    def _worth_a_look(self, length: int) -> bool:
        return not self._times.known(length) or self._times.stale(length)

    def _book(self, outcome: RoundOutcome, best: int, rate: float) -> None:
        """Put a round's share into the account of probes, and what it lost or won if it was one."""
        seconds, fair = outcome.draft_s + outcome.verify_s, (outcome.accepted + 1) / rate
        self._account += PROBE_SHARE * seconds
        if outcome.drafted != best:
            self._account -= seconds - fair
        self._account = min(self._account, _MOST_SAVED * (1.0 + best) / rate)

    def _round_seconds(self, length: int, verify_s: float | None) -> float:
        return max((verify_s or 0.0) + length * self._step, 1e-9)


def _best(rates: dict[int, float]) -> int:
    """The length of the highest rate; the shortest of equals."""
    return max(rates, key=lambda n: rates[n])
