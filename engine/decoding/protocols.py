"""What decoding asks of a model and of a drafter. Tests script either side by implementing these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engine.decoding.records import Source

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.decoding.distribution import Distribution
    from engine.decoding.sampler import Sampler

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


class TargetModel(Protocol):
    """A model with a cache, seen from decoding: it reads tokens, and can take back the last ones exactly."""

    @property
    def position(self) -> int:
        """Tokens in the cache; the next token read gets this position."""

    @property
    def vocabulary(self) -> int:
        """Token ids are 0 … vocabulary − 1; logits beyond them (padding rows of the head) are never returned."""

    @property
    def context(self) -> int:
        """Most positions the cache may hold."""

    def forward(self, tokens: Sequence[int], cancel: CancelToken | None = None) -> FloatArray:
        """Read tokens at the current position. Returns final-normed hidden states [T, H].

        Up to 15 tokens at a time give each row the same bits as one at a time.
        On `Cancelled` or another error the cache is as before the call.
        """

    def logits(self, hidden: FloatArray) -> FloatArray:
        """Logits [T, vocabulary] of hidden states [T, H]."""

    def rollback(self, position: int) -> None:
        """Forget tokens from `position` on, exactly: as if they had never been read. Allowed anywhere inside the span
        of the last `forward` (and at its start)."""


class MtpModel(Protocol):
    """The multi-token-prediction layer of a checkpoint or sidecar, with its own KV cache."""

    @property
    def position(self) -> int:
        """Entries in its KV cache."""

    @property
    def draft_ids(self) -> IntArray | None:
        """For a trimmed head: token id of each of its rows [n]; None if the head is the model's own."""

    @property
    def draft_step_bytes(self) -> int:
        """Weight bytes that one draft step reads."""

    def forward(self, hidden: FloatArray, tokens: Sequence[int]) -> FloatArray:
        """Pair hidden states [T, H] of positions i with the tokens at i + 1 [T]; appends T cache entries.
        Returns normed outputs [T, H]: input of the head, and hidden state of the next recursion."""

    def logits(self, output: FloatArray) -> FloatArray:
        """Draft logits [T, n] of outputs [T, H]; n is the length of `draft_ids`, or the vocabulary."""

    def truncate(self, length: int) -> None:
        """Keep the first `length` cache entries."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a drafter proposes for one round."""

    tokens: tuple[int, ...]
    sources: tuple[Source, ...]
    distributions: tuple[Distribution | None, ...]
    """The distribution each token was drawn from; None means that the token was certain (n-gram lookup: q = 1)."""
    note: str = ""
    """Why there are none, if there are none."""
    passes: int = 0
    """Draft-model passes made."""
    probabilities: tuple[float | None, ...] = ()
    """The drafter's probability of each token, for display; None, or a missing tail, where it has none."""
    alternatives: tuple[tuple[tuple[int, float], ...], ...] = ()
    """The drafter's most likely (token, probability) at each place, when the sampler was asked for them."""


class Drafter(Protocol):
    """Proposes the tokens that follow. It sees each committed token once, in order, with the trunk's hidden state."""

    @property
    def draft_step_bytes(self) -> int:
        """Weight bytes that one draft step reads; 0 if it reads none."""

    def extend(self, tokens: Sequence[int], hidden: FloatArray) -> None:
        """The model has read `tokens` [T], which stay, and their final-normed hidden states are `hidden` [T, H]."""

    def propose(self, next_token: int, limit: int, sampler: Sampler, cancel: CancelToken | None = None) -> Draft:
        """Up to `limit` tokens to follow `next_token`, which is committed but not yet read by the model.
        Drafting ends after an end token. Leaves no trace of the proposal in its caches, also when it raises
        `Cancelled`."""

    def observe(self, tested: int, accepted: int) -> None:
        """Of the last proposal, `tested` tokens were judged and `accepted` of them kept. Called once a round, after
        `extend`; never for a round that failed. A stop inside an accepted run is no refusal: then they are equal."""

    def truncate(self, position: int, hidden: FloatArray | None = None) -> None:
        """Forget everything about tokens at `position` and after.

        `hidden` [H] is the final-normed state of the token at `position` − 1, for a caller that kept it; a drafter that
        needs it and has it no more loses one row of context, never correctness."""


class Detokeniser(Protocol):
    """Turns tokens into text one at a time, holding back bytes that are no whole character yet."""

    def push(self, token_id: int) -> str:
        """The text that this token adds."""

    def flush(self) -> str:
        """What is still held back."""

    def clone(self) -> Detokeniser:
        """An independent copy."""
