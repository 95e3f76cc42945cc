"""From a row of logits to a token, and to the exact distribution that the token is drawn from.

Order of operations, that of Hugging Face transformers' processors: logit bias; repetition, presence and frequency
penalties; temperature; top-k; top-p (renormalised over what top-k left); min-p. Temperature 0 is greedy: the first
maximum after bias and penalties, and nothing of the rest.

Model and drafter rows go through the same operations, so that a draft is as likely as possible to be accepted; the
penalties see the drafts that stand before a row, and only while that row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from engine.decoding.distribution import Distribution, DoubleArray
from engine.decoding.history import History
from engine.decoding.protocols import FloatArray, IntArray
from engine.decoding.randomness import Purpose, uniform
from engine.errors import NumericsError
from engine.kernels.logits import all_finite, argmax, log_sum_exp, top_k
from engine.options import SamplingOptions

_FIRST_NUCLEUS = 256  # tokens looked at first in search of a top-p set; 16 times as many at each further try


class Sampler:
    """Chooses tokens for one reply. Holds the reply's history; everything else is a function of the arguments."""

    def __init__(self, options: SamplingOptions, prompt: Sequence[int] = (), alternatives: int = 0) -> None:
        """`prompt` is what the model has read before the reply; `alternatives` how many likely tokens a row reports."""
        self.options = options
        self.alternatives = alternatives
        self._history = History(prompt)
        self._committed = len(prompt)
        self._penalises = (
            options.repetition_penalty != 1.0 or options.presence_penalty != 0.0 or options.frequency_penalty != 0.0
        )
        self._bias_ids: IntArray = np.array(list(options.logit_bias), np.int64)
        self._bias: FloatArray = np.array(list(options.logit_bias.values()), np.float32)
        self._all_ids: IntArray = np.arange(0)

    @property
    def greedy(self) -> bool:
        return self.options.greedy

    @property
    def committed(self) -> int:
        """Tokens of prompt and reply so far; also the position of the next one."""
        return self._committed

    def commit(self, tokens: Iterable[int]) -> None:
        """The reply goes on with `tokens`. Accepted drafts count, refused ones don't."""
        kept = list(tokens)
        self._history.push(kept)
        self._committed += len(kept)

    def uniform(self, ahead: int, purpose: Purpose) -> float:
        """The random number in [0, 1) for the token after `ahead` drafts."""
        return uniform(self.options.seed, self._committed, ahead, purpose)

    def row(self, logits: FloatArray, ahead: Sequence[int] = (), ids: IntArray | None = None) -> Row:
        """Look at logits [V], which follow the committed tokens and then the drafts `ahead`.

        `ids` [V], ascending, are the token ids of a trimmed head's rows; without it they are 0 … V − 1.

        Raises:
            NumericsError: a logit is NaN or infinite.
        """
        if not all_finite(logits):
            raise NumericsError(
                f"The logits for position {self._committed + len(ahead)} are not finite numbers, so the reply stops "
                "here: the model file may be damaged; check its download, or try another quantisation."
            )
        return Row(self, logits, tuple(ahead), ids)

    def processed(self, logits: FloatArray, ahead: Sequence[int], ids: IntArray | None) -> FloatArray:
        """Logits [V] after bias and penalties; the same array if there are none."""
        if not self._penalises and not len(self._bias):
            return logits
        if ids is None:
            scores = logits.copy()
        else:  # work in the numbering of the vocabulary
            scores = np.zeros(int(ids[-1]) + 1, np.float32)
            scores[ids] = logits
        inside = self._bias_ids < len(scores)
        scores[self._bias_ids[inside]] += self._bias[inside]
        if self._penalises:
            self._history.push(ahead)
            self._history.penalise(scores, self.options)
            self._history.pop(ahead)
        return scores if ids is None else scores[ids]

    def ids_of(self, count: int) -> IntArray:
        """0 … count − 1, the same array each time, so that equal supports are cheap to recognise."""
        if len(self._all_ids) != count:
            self._all_ids = np.arange(count)
        return self._all_ids


class Row:
    """One row of logits, seen through the sampler's settings. What is asked for is computed once, on demand."""

    def __init__(self, sampler: Sampler, logits: FloatArray, ahead: tuple[int, ...], ids: IntArray | None) -> None:
        self._sampler = sampler
        self._logits = logits
        self._ahead = ahead
        self._ids = sampler.ids_of(len(logits)) if ids is None else ids
        self._scores = sampler.processed(logits, ahead, ids)

    @cached_property
    def best(self) -> int:
        """The greedy token: the first maximum after bias and penalties."""
        return int(self._ids[argmax(self._scores)])

    @cached_property
    def distribution(self) -> Distribution:
        """What a token is drawn from when sampling."""
        slots, weights = _candidates(self._scores, self._sampler.options)
        total = weights.sum()
        if slots is None:
            return Distribution(self._ids, weights / total)
        order = np.argsort(slots)
        return Distribution(self._ids[slots[order]], weights[order] / total)

    def draw(self, purpose: Purpose) -> int:
        """The token itself: the best one, or a sample."""
        if self._sampler.greedy:
            return self.best
        return self.distribution.sample(self.uniform(purpose))

    def uniform(self, purpose: Purpose) -> float:
        """This row's random number for a purpose."""
        return self._sampler.uniform(len(self._ahead), purpose)

    def probability(self, token: int) -> float:
        """The probability of `token`, to be shown: of the sampled distribution, or, when greedy, of the softmax of the
        raw logits at temperature 1 (the greedy distribution itself has only a one and zeros)."""
        if not self._sampler.greedy:
            return self.distribution.probability(token)
        slot = int(np.searchsorted(self._ids, token))
        if slot == len(self._ids) or self._ids[slot] != token:
            return 0.0
        return float(np.exp(np.float64(self._logits[slot]) - self._log_sum))

    def alternatives(self) -> tuple[tuple[int, float], ...]:
        """As many of the most likely (token, probability) as the sampler reports; probabilities as in `probability`."""
        count = self._sampler.alternatives
        if count == 0:
            return ()
        if not self._sampler.greedy:
            return self.distribution.top(count)
        slots, values = top_k(self._logits, min(count, len(self._logits)))
        shares = np.exp(values.astype(np.float64) - self._log_sum)
        return tuple((int(self._ids[slot]), float(share)) for slot, share in zip(slots, shares, strict=True))

    @cached_property
    def _log_sum(self) -> float:
        return float(log_sum_exp(self._logits, np.float32(1.0)))


def _candidates(scores: FloatArray, options: SamplingOptions) -> tuple[IntArray | None, DoubleArray]:
    """Slots of the tokens that may come (None: all) and their weights, by temperature, top-k, top-p and min-p."""
    slots: IntArray | None = None
    if 0 < options.top_k < len(scores):
        slots, values = top_k(scores, options.top_k)  # descending
        weights = _weights(values, scores, options.temperature)
        if options.top_p < 1:
            weights = weights[: _nucleus(weights, options.top_p * weights.sum())]
    elif options.top_p < 1:
        slots, weights = _top_p(scores, options)
    else:
        weights = _weights(scores, scores, options.temperature)
    if options.min_p > 0:
        likely = weights >= options.min_p  # the most likely token's weight is 1
        slots = np.flatnonzero(likely) if slots is None else slots[: len(weights)][likely]
        weights = weights[likely]
    return (None if slots is None else slots[: len(weights)]), weights


def _weights(values: FloatArray, scores: FloatArray, temperature: float) -> DoubleArray:
    """exp((value − maximum) / temperature)."""
    return np.exp((values.astype(np.float64) - np.float64(scores.max())) / temperature)


def _nucleus(descending: DoubleArray, mass: float) -> int:
    """How many of the descending weights it takes to reach `mass`; all of them if rounding keeps it out of reach."""
    return min(int(np.searchsorted(np.cumsum(descending), mass)) + 1, len(descending))


def _top_p(scores: FloatArray, options: SamplingOptions) -> tuple[IntArray, DoubleArray]:
    """The smallest set of most likely tokens that reaches top-p, without sorting the whole vocabulary."""
    mass = options.top_p * float(_weights(scores, scores, options.temperature).sum())
    count = min(_FIRST_NUCLEUS, len(scores))
    while True:
        slots, values = top_k(scores, count)
        weights = _weights(values, scores, options.temperature)
        if count == len(scores) or weights.sum() >= mass:
            needed = _nucleus(weights, mass)
            return slots[:needed], weights[:needed]
        count = min(16 * count, len(scores))
