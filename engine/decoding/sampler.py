"""From a row of logits to a token, and to the exact distribution that the token is drawn from.

Order of operations, that of Hugging Face transformers' processors: logit bias; repetition, presence and frequency
penalties; temperature; top-k; top-p (renormalised over what top-k left); min-p. Temperature 0 is greedy: the first
maximum after bias and penalties, and nothing of the rest.

Probabilities over the whole vocabulary are a float32 softmax, accurate to some 1e-7 of their value; those of a top-k
set are computed in float64. Either way they are what tokens are drawn from and what drafts are judged by.

Model and drafter rows go through the same operations, so that a draft is as likely as possible to be accepted; the
penalties see the drafts that stand before a row, and only while that row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.decoding.distribution import Distribution, DoubleArray
from engine.decoding.history import History
from engine.decoding.protocols import FloatArray, IntArray
from engine.decoding.randomness import Purpose, uniform
from engine.errors import NumericsError
from engine.kernels.logits import all_finite, argmax, log_sum_exp, softmax, top_k
from engine.options import SamplingOptions

_FEW = 256  # tokens looked at first in search of a top-p set
_BIN_SHIFT = 16  # bits of a float32 that do not count for its bin: exponent and seven bits of the mantissa do
_BINS = (0x3F80_0000 >> _BIN_SHIFT) + 1  # no probability is above 1, whose bits these are
_STRETCH = 32_768


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
        self._scratch: FloatArray = np.empty(0, np.float32)

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

    def scratch(self, count: int) -> FloatArray:
        """[count] numbers for a row's intermediate results. Large arrays are dear to make: their memory is new."""
        if len(self._scratch) < count:
            self._scratch = np.empty(count, np.float32)
        return self._scratch[:count]


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
        slots, weights = _candidates(self._scores, self._sampler.options, self._sampler.scratch(len(self._scores)))
        weights /= weights.sum()
        if slots is None:
            return Distribution(self._ids, weights)
        return Distribution(
            slots if self._ids is self._sampler.ids_of(len(self._scores)) else self._ids[slots], weights
        )

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


def _candidates(
    scores: FloatArray, options: SamplingOptions, likely: FloatArray
) -> tuple[IntArray | None, DoubleArray]:
    """Slots of the tokens that may come, ascending (None: all), and their weights, by temperature, top-k, top-p and
    min-p. `likely` [V] is scratch memory."""
    slots: IntArray | None = None
    if 0 < options.top_k < len(scores):
        slots, weights = _top_k(scores, options)
    else:
        softmax(scores, likely, np.float32(options.temperature))
        if options.top_p < 1:
            slots = _top_p(scores, likely, options.top_p)
            likely = likely[slots]
        weights = likely.astype(np.float64)
    if options.min_p > 0:
        kept = np.flatnonzero(weights >= options.min_p * weights.max())
        slots, weights = (kept if slots is None else slots[kept]), weights[kept]
    return slots, weights


def _top_k(scores: FloatArray, options: SamplingOptions) -> tuple[IntArray, DoubleArray]:
    """The k most likely tokens, cut by top-p if that is asked for too."""
    slots, values = top_k(scores, options.top_k)  # descending
    weights = np.exp((values.astype(np.float64) - np.float64(values[0])) / options.temperature)
    if options.top_p < 1:
        needed = _reaching(weights, options.top_p * weights.sum())
        slots, weights = slots[:needed], weights[:needed]
    order = np.argsort(slots)
    return slots[order], weights[order]


def _top_p(scores: FloatArray, likely: FloatArray, top_p: float) -> IntArray:
    """The smallest set of most likely tokens whose probabilities `likely` [V] reach `top_p`, equals by id; ascending.

    Mostly a few tokens are enough. Otherwise their bits, which are in the order of the numbers, sort them into bins
    (128 for each factor of two); only the bin in which the sum is reached is sorted.
    """
    slots, _ = top_k(scores, min(_FEW, len(scores)))
    share = likely[slots].astype(np.float64)
    if share.sum() >= top_p or len(slots) == len(scores):
        return np.sort(slots[: _reaching(share, top_p)])
    bins = likely.view(np.int32) >> _BIN_SHIFT
    sums = _bin_sums(bins, likely)[::-1].cumsum()  # from the most likely bin down
    last = _reaching_index(sums, top_p)
    border = len(sums) - 1 - last
    inside = np.flatnonzero(bins == border)
    inside = inside[np.argsort(-likely[inside], kind="stable")]
    missing = top_p - (float(sums[last - 1]) if last else 0.0)
    kept = bins > border
    kept[inside[: _reaching(likely[inside].astype(np.float64), missing)]] = True
    return np.flatnonzero(kept)


def _bin_sums(bins: npt.NDArray[np.int32], likely: FloatArray) -> DoubleArray:
    """The sum of `likely` [V] in each bin; a stretch at a time, as numpy makes copies of both."""
    sums = np.zeros(_BINS)
    for start in range(0, len(bins), _STRETCH):
        part = slice(start, start + _STRETCH)
        sums += np.bincount(bins[part], weights=likely[part], minlength=_BINS)
    return sums


def _reaching(weights: DoubleArray, mass: float) -> int:
    """How many of the weights it takes, in their order, to reach `mass`; all if rounding keeps it out of reach."""
    return _reaching_index(np.cumsum(weights), mass) + 1


def _reaching_index(sums: DoubleArray, mass: float) -> int:
    """Where the growing `sums` reach `mass`; the last place if rounding keeps it out of reach."""
    return min(int(np.searchsorted(sums, mass)), len(sums) - 1)
