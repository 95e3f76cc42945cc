"""Two drafters, one draft a round: whichever promises more.

The promise is the expected number of accepted tokens, less a little for every pass of the draft layer. N-gram lookup is
judged at every place where it finds something, used or not: what the text then said tells whether it was right. So it
loses its turn in prose, and wins it back at once where text is copied, without a single trial round.

The choice never looks at tokens that the draft layer drew: a draft dropped for what it turned out to be would bias the
ones that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cancel import CancelToken
from engine.decoding.acceptance import AcceptanceEstimate
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter, certain
from engine.decoding.protocols import Draft, FloatArray
from engine.decoding.sampler import Sampler

_PASS_PRICE = 0.05
"""Accepted tokens that a pass of the draft layer must promise."""
_PRIORS = {2: 0.3, 3: 0.5, 4: 0.65, 5: 0.8}
"""First guess at an n-gram draft's acceptance, by length of the suffix that was found (5: or more)."""


class CombinedDrafter:
    """`Drafter` that has both others."""

    def __init__(self, mtp: MtpDrafter, ngram: NgramDrafter) -> None:
        self._mtp = mtp
        self._ngram = ngram
        self._mtp_acceptance = AcceptanceEstimate()
        self._ngram_acceptance = {n: AcceptanceEstimate(prior=prior) for n, prior in _PRIORS.items()}
        self._used_mtp = False  # the last proposal was the draft layer's alone
        self._open: tuple[int, list[int]] | None = None  # suffix length and tokens of the lookup not yet judged
        self._said: list[int] = []  # what the text said from there on

    def replace_layer(self, mtp: MtpDrafter) -> None:
        """Go on with another branch of the conversation; what was learnt of both drafters stays."""
        self._mtp = mtp
        self._open = None

    @property
    def draft_step_bytes(self) -> int:
        return self._mtp.draft_step_bytes

    def extend(self, tokens: Sequence[int], hidden: FloatArray) -> None:
        """See `Drafter.extend`."""
        self._mtp.extend(tokens, hidden)
        self._ngram.extend(tokens)
        if self._open:
            self._said += [int(token) for token in tokens]

    def propose(self, next_token: int, limit: int, sampler: Sampler, cancel: CancelToken | None = None) -> Draft:
        """See `Drafter.propose`."""
        self._judge_lookup(next_token)
        found, matched, known = self._ngram.look_up(next_token, limit)
        self._used_mtp = False
        if not found:
            self._used_mtp = True
            return self._mtp.propose(next_token, limit, sampler, cancel)
        kind = min(matched, max(_PRIORS))
        self._open, self._said = (kind, found), []
        lookup = self._ngram_acceptance[kind]
        gains = {
            "ngram": lookup.gain(len(found)),
            "mtp": self._mtp_acceptance.gain(limit) - _PASS_PRICE * limit,
            "both": self._gain_of_both(lookup, known, limit),
        }
        choice = max(gains, key=lambda name: gains[name])
        if choice == "ngram":
            return certain(found)
        if choice == "both":
            rest = self._mtp.propose_after(found[:known], next_token, limit - known, sampler, cancel)
            return _joined(certain(found[:known]), rest)
        self._used_mtp = True
        return self._mtp.propose(next_token, limit, sampler, cancel)

    def observe(self, tested: int, accepted: int) -> None:
        """See `Drafter.observe`."""
        if self._used_mtp and tested:
            self._mtp_acceptance.add(tested, accepted)
        self._used_mtp = False

    def truncate(self, position: int, hidden: FloatArray | None = None) -> None:
        """See `Drafter.truncate`."""
        self._mtp.truncate(position, hidden)
        self._ngram.truncate(position)
        self._open = None

    def _gain_of_both(self, lookup: AcceptanceEstimate, known: int, limit: int) -> float:
        """The `known` tokens of a lookup before the text ends, then the draft layer, which has to run along."""
        if not 0 < known < limit:
            return 0.0
        rest = lookup.survival[known] * self._mtp_acceptance.gain(limit - known)
        return lookup.gain(known) + rest - _PASS_PRICE * limit

    def _judge_lookup(self, next_token: int) -> None:
        """How far the last lookup was right, whether it was used or not."""
        if self._open is None:
            return
        kind, tokens = self._open
        said = [*self._said[1:], next_token]  # the first was what the lookup followed
        compared = min(len(tokens), len(said))
        right = next((i for i in range(compared) if tokens[i] != said[i]), compared)
        self._ngram_acceptance[kind].add(min(right + 1, compared), right)
        self._open = None


def _joined(first: Draft, rest: Draft) -> Draft:
    """`first`, then `rest`."""
    count = len(first.tokens)
    return Draft(
        tokens=first.tokens + rest.tokens,
        sources=first.sources + rest.sources,
        distributions=first.distributions + rest.distributions,
        note=rest.note,
        passes=first.passes + rest.passes,
        probabilities=(None,) * count + rest.probabilities,
        alternatives=((),) * count + rest.alternatives,
    )
