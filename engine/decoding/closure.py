"""N-gram speculation in its plain form, for any model that can be called as a function.

Greedy, over the prompt alone, first occurrence: the simplest thing that is right. `engine.decoding.drafters.ngram` is
what the program itself uses; it also searches the reply, and is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import NumericsError, OptionError
from engine.kernels.logits import all_finite, argmax
from engine.options import MAX_DRAFT_TOKENS

Logits = npt.NDArray[np.floating]

SHORTEST = 2
"""Tokens of the shortest suffix that is looked up: a single token says too little."""


@dataclass(frozen=True, slots=True)
class SpeculationConfig:
    """Validated limits of a speculator.

    Raises:
        OptionError: a limit is out of range; the message has the number and the range.
    """

    max_ngram: int = 5
    max_draft: int = 4

    def __post_init__(self) -> None:
        if self.max_ngram < SHORTEST:
            raise OptionError(f"max_ngram is {self.max_ngram}, but it must be {SHORTEST} or more.")
        if not 1 <= self.max_draft <= MAX_DRAFT_TOKENS:
            raise OptionError(f"max_draft is {self.max_draft}, but it must be 1…{MAX_DRAFT_TOKENS}.")


class NgramSpeculator:
    """Drafts what followed in the prompt the first time that it read like the latest tokens."""

    def __init__(self, prompt_tokens: Sequence[int], max_ngram: int = 5, max_draft: int = 4) -> None:
        self.config = SpeculationConfig(max_ngram, max_draft)
        self._prompt = list(prompt_tokens)

    def speculate(self, recent: Sequence[int]) -> list[int]:
        """Up to `max_draft` tokens that may follow `recent`, the latest tokens; empty if nothing matches.

        The longest suffix of `recent` counts, from `max_ngram` tokens down to 2, at its first occurrence in the prompt.
        A match at the prompt's very end has nothing to offer, and falls to a shorter suffix.
        """
        for n in range(min(self.config.max_ngram, len(recent)), SHORTEST - 1, -1):
            suffix = list(recent[len(recent) - n :])
            for start in range(len(self._prompt) - n):  # at least one token follows
                if self._prompt[start : start + n] == suffix:
                    return self._prompt[start + n : start + n + self.config.max_draft]
        return []


def verify_draft(draft: Sequence[int], logits: Logits) -> tuple[list[int], int]:
    """(the accepted prefix of `draft`, the model's own token after it).

    `logits` [len(draft) + 1, V]: row i is what the model says after the first i drafts. Every draft is verified, the
    first one too, and a fully accepted draft is followed by a bonus token.

    Raises:
        OptionError: not enough rows.
        NumericsError: a row that had to be looked at is not finite.
    """
    if len(logits) < len(draft) + 1:
        raise OptionError(
            f"{len(draft)} draft tokens need {len(draft) + 1} rows of logits, but there are {len(logits)}."
        )
    for i, token in enumerate(draft):
        own = _choose(logits[i])
        if own != token:
            return list(draft[:i]), own
    return list(draft), _choose(logits[len(draft)])


@dataclass(frozen=True, slots=True)
class SpeculationResult:
    """What `generate_with_speculation` gives."""

    tokens: tuple[int, ...]
    """The reply, with the end token if it came."""
    passes: int
    """Calls of the model, that of the prompt included."""
    drafted: int
    accepted: int
    """Drafts that became part of the reply."""

    @property
    def acceptance(self) -> float | None:
        """accepted / drafted; None if nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


def generate_with_speculation(
    prompt_tokens: Sequence[int],
    max_new_tokens: int,
    eos_token: int | None,
    forward: Callable[[Sequence[int], int], Logits],
    *,
    max_ngram: int = 5,
    max_draft: int = 4,
) -> SpeculationResult:
    """Greedy decoding with n-gram drafts: exactly the tokens of plain greedy decoding, in fewer calls.

    Args:
        forward: `forward(tokens, position)` reads `tokens` at `position`, forgetting whatever it read there and after
            before, and returns logits [len(tokens), V]. A model without a cache can keep the text itself.
        eos_token: ends the reply, also inside a draft; None for none.

    Raises:
        OptionError: an empty prompt, or a number out of range.
        NumericsError: the model gave NaN or infinite logits.
    """
    if not len(prompt_tokens):
        raise OptionError("The prompt has 0 tokens, but it must have 1 or more.")
    if max_new_tokens < 0:
        raise OptionError(f"max_new_tokens is {max_new_tokens}, but it must be 0 or more.")
    speculator = NgramSpeculator(prompt_tokens, max_ngram, max_draft)
    text, end = list(prompt_tokens), len(prompt_tokens) + max_new_tokens
    if max_new_tokens == 0:
        return SpeculationResult((), 0, 0, 0)
    text.append(_choose(forward(text, 0)[-1]))
    passes, drafted, accepted = 1, 0, 0
    while len(text) < end and text[-1] != eos_token:
        draft = speculator.speculate(text[-max_ngram:])[: end - len(text) - 1]  # one token is the model's own
        kept, own = verify_draft(draft, forward([text[-1], *draft], len(text) - 1))
        new = [*kept, own]
        if eos_token in new:
            new = new[: new.index(eos_token) + 1]
        text += new
        passes, drafted, accepted = passes + 1, drafted + len(draft), accepted + min(len(kept), len(new))
    return SpeculationResult(tuple(text[len(prompt_tokens) :]), passes, drafted, accepted)


def _choose(row: Logits) -> int:
    if not all_finite(row):
        raise NumericsError("The model's logits are not finite numbers.")
    return int(argmax(row))
