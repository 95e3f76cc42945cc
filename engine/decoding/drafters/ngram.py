"""Prompt lookup: what followed the last time that the text ended like this?

Saxena, "Prompt Lookup Decoding" (2023). The longest suffix of prompt and reply that occurred before, at least two
tokens, is looked up; the most recent occurrence wins, and what followed it is the draft. No model runs, so a draft is
free; its tokens are certain (q = 1).

Other texts, such as the person's other conversations, may be searched too where this one has nothing. They are an index
of their own: nothing of them is ever in the context, only guesses come from there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from engine.cancel import CancelToken
from engine.decoding.protocols import Draft, FloatArray
from engine.decoding.records import Source
from engine.decoding.sampler import Sampler
from engine.kernels.ngram_index import NgramIndex

_BORDER = -1
"""Between two other texts; no token has this id."""


class NgramDrafter:
    """`Drafter` over an index of everything said so far."""

    def __init__(self, end_tokens: Container[int] = (), max_ngram: int = 5) -> None:
        """`end_tokens`: drafting stops after one of these. `max_ngram`: the longest suffix to look for, at least 2."""
        self._end_tokens = end_tokens
        self._index = NgramIndex(max_ngram)
        self._others: NgramIndex | None = None

    def search_also(self, texts: Iterable[Sequence[int]]) -> None:
        """From now on look into these token sequences too, later ones first, where the text itself has nothing;
        replaces what was given before."""
        self._others = NgramIndex(self._index.max_ngram)
        for text in texts:
            self._others.extend([*(int(token) for token in text), _BORDER])

    @property
    def draft_step_bytes(self) -> int:
        return 0

    @property
    def position(self) -> int:
        """Tokens seen."""
        return len(self._index)

    def extend(self, tokens: Sequence[int], hidden: FloatArray | None = None) -> None:  # noqa: ARG002
        """See `Drafter.extend`; hidden states are not needed."""
        self._index.extend([int(token) for token in tokens])

    def propose(
        self,
        next_token: int,
        limit: int,
        sampler: Sampler | None = None,  # noqa: ARG002
        cancel: CancelToken | None = None,  # noqa: ARG002
    ) -> Draft:
        """See `Drafter.propose`."""
        tokens, _, _ = self.look_up(next_token, limit)
        return certain(tokens, note="" if tokens or limit <= 0 else "0 drafts: this text has not occurred before.")

    def look_up(self, next_token: int, limit: int) -> tuple[list[int], int, int]:
        """(what may follow `next_token`, length of the suffix that was found, how many tokens of the answer stood in
        the text); empty and zeros if nothing was found."""
        if limit <= 0:
            return [], 0, 0
        self._index.append(next_token)
        try:
            match = self._index.longest_match()
            if match is None:
                return self._look_up_others(limit)
            position, matched = match
            draft = self._following(position, limit)
            return draft, matched, min(len(draft), len(self._index) - position)
        finally:
            self._index.truncate(len(self._index) - 1)

    def _look_up_others(self, limit: int) -> tuple[list[int], int, int]:
        """`look_up` among the other texts, for the end of the text as it stands."""
        if not self._others:
            return [], 0, 0
        end, count = len(self._others), self._others.max_ngram
        self._others.extend(self._index.following(max(0, len(self._index) - count), count))
        try:
            match = self._others.longest_match()
            known = [] if match is None else self._others.following(match[0], min(limit, end - match[0]))
        finally:
            self._others.truncate(end)
        draft: list[int] = []
        for token in known:
            if token == _BORDER:
                break
            draft.append(token)
            if token in self._end_tokens:
                break
        return (draft, match[1], len(draft)) if match and draft else ([], 0, 0)

    def observe(self, tested: int, accepted: int) -> None:
        """Nothing to learn."""

    def truncate(self, position: int, hidden: FloatArray | None = None) -> None:  # noqa: ARG002
        """See `Drafter.truncate`."""
        self._index.truncate(position)

    def _following(self, position: int, limit: int) -> list[int]:
        """Up to `limit` tokens from `position` on. Where the text ends the draft itself goes on, so that a repetition
        with a short period is drafted as long as one with a long period."""
        known = [int(token) for token in self._index.following(position, limit)]
        period = len(self._index) - position
        draft: list[int] = []
        while len(draft) < limit:
            draft.append(known[len(draft)] if len(draft) < len(known) else draft[len(draft) - period])
            if draft[-1] in self._end_tokens:
                break
        return draft


def certain(tokens: Sequence[int], note: str = "") -> Draft:
    """A draft of n-gram lookup."""
    sources: list[Source] = ["ngram"] * len(tokens)
    return Draft(tuple(tokens), tuple(sources), (None,) * len(tokens), note=note)
