"""Drafting with the model's own multi-token-prediction layer.

The layer pairs the trunk's final-normed hidden state h_i with the token x_{i+1}, at position i, and predicts x_{i+2}.
Its normed output is also the hidden state of the next step, so that it can go on by itself:

    known       (h_0, x_1) (h_1, x_2) … (h_{n-2}, x_{n-1})     in its KV cache
    pending     h_{n-1}, and x_n once it is committed          → d_1
    recursion   (out, d_1) → d_2, (out, d_2) → d_3, …          dropped when the proposal is made

After a round the accepted drafts run again, now with the trunk's true hidden states, as the first pass of the next
proposal, whose last output is its first draft.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from engine.cancel import CancelToken
from engine.decoding.distribution import Distribution
from engine.decoding.protocols import Draft, FloatArray, IntArray, MtpModel
from engine.decoding.randomness import Purpose
from engine.decoding.records import Source
from engine.decoding.sampler import Row, Sampler
from engine.errors import NumericsError

_MOST_WAITING = 15
"""Rows that may wait for the next proposal; more (a prompt, or a stretch without drafts) are run at once."""


class MtpDrafter:
    """`Drafter` over an `MtpModel`. Sees every committed token once, with its hidden state."""

    def __init__(self, mtp: MtpModel, end_tokens: Container[int] = ()) -> None:
        """`end_tokens`: drafting stops after one of these."""
        self._mtp = mtp
        self._end_tokens = end_tokens
        self._position = mtp.position  # tokens seen
        self._hidden: FloatArray | None = None  # [m, H], states of the last m tokens, whose pairs are not in the cache
        self._tokens: list[int] = []  # [m - 1], the tokens after each of them but the last
        self._early: int | None = None  # token that the last state was already paired with, by a proposal
        self._head_order: IntArray | None = None  # ascending order of a trimmed head's rows
        self._head_ids: IntArray | None = None
        if mtp.draft_ids is not None:
            self._head_order = np.argsort(mtp.draft_ids)
            self._head_ids = mtp.draft_ids[self._head_order]

    @property
    def draft_step_bytes(self) -> int:
        return self._mtp.draft_step_bytes

    @property
    def position(self) -> int:
        """Tokens seen."""
        return self._position

    def clone(self, mtp: MtpModel) -> MtpDrafter:
        """An independent drafter with the same past, over a copy of the same MTP model's state."""
        other = MtpDrafter(mtp, self._end_tokens)
        other._position, other._early = self._position, self._early
        other._hidden, other._tokens = self._hidden, list(self._tokens)  # hidden states are replaced, never written to
        return other

    def extend(self, tokens: Sequence[int], hidden: FloatArray) -> None:
        """See `Drafter.extend`; `tokens` may be hundreds (a chunk of a prompt)."""
        if not len(tokens):
            return
        own = hidden
        if self._hidden is None:
            if self._position:  # the state before was forgotten: a row of zeros stands for it
                self._hidden, self._tokens = np.zeros_like(own[:1]), []
            else:
                self._hidden, self._tokens, own, tokens = own[:1], [], own[1:], tokens[1:]
                self._position += 1
        elif self._early is not None:
            self._settle(int(tokens[0]), own[:1])
            own, tokens = own[1:], tokens[1:]
        self._hidden = np.concatenate([self._hidden, own])  # a copy: a view would keep the whole pass alive
        self._tokens.extend(int(token) for token in tokens)
        self._position += len(tokens)
        if len(self._tokens) > _MOST_WAITING:
            self._run_known()

    def propose(self, next_token: int, limit: int, sampler: Sampler, cancel: CancelToken | None = None) -> Draft:
        """See `Drafter.propose`. One pass over what waits, then one a further token."""
        return self.propose_after((), next_token, limit, sampler, cancel)

    def propose_after(
        self,
        prefix: Sequence[int],
        next_token: int,
        limit: int,
        sampler: Sampler,
        cancel: CancelToken | None = None,
    ) -> Draft:
        """Up to `limit` tokens to follow `next_token` and `prefix`, which is somebody else's draft."""
        if limit <= 0:
            return Draft((), (), ())
        if self._hidden is None:
            return Draft((), (), (), note="0 drafts: the drafter has not seen the prompt.")
        base = None
        try:
            out = self._first_output(next_token)
            base = self._mtp.position
            return self._recurse(out, list(prefix), limit, sampler, cancel or CancelToken())
        finally:
            if base is not None:
                self._mtp.truncate(base)

    def observe(self, tested: int, accepted: int) -> None:
        """Nothing to learn: what was accepted comes by `extend`."""

    def truncate(self, position: int, hidden: FloatArray | None = None) -> None:
        """See `Drafter.truncate`."""
        if position == self._position and self._hidden is not None:
            return
        self._forget_early()
        known = self._position - len(self._tokens)  # tokens up to the first waiting state
        if self._hidden is not None and position >= known:
            keep = position - known
            self._hidden, self._tokens = self._hidden[: keep + 1], self._tokens[:keep]
        else:
            self._mtp.truncate(max(0, position - 1))
            self._hidden, self._tokens = None, []
            if hidden is not None and position > 0:
                self._hidden = np.array(hidden, np.float32).reshape(1, -1)
        self._position = position

    # ---- the pairs

    def _first_output(self, next_token: int) -> FloatArray:
        """Run what waits, then the last known state with `next_token`: the output [1, H] that gives the first draft."""
        assert self._hidden is not None
        self._forget_early()
        out = self._mtp.forward(self._hidden, [*self._tokens, next_token])
        self._hidden, self._tokens, self._early = self._hidden[-1:].copy(), [], next_token
        return out[-1:]

    def _settle(self, token: int, hidden: FloatArray) -> None:
        """The token after a proposal's base has come: its pair is in the cache if it is the one proposed for."""
        assert self._hidden is not None
        if token == self._early:
            self._early = None
            self._hidden = hidden
        else:
            self._forget_early()
            self._hidden = np.concatenate([self._hidden, hidden])
            self._tokens.append(token)
        self._position += 1

    def _forget_early(self) -> None:
        """Take the last state's pair out of the cache again."""
        if self._early is not None:
            self._mtp.truncate(self._mtp.position - 1)
            self._early = None

    def _run_known(self) -> None:
        """Run all pairs that are complete; the last state waits for its token."""
        assert self._hidden is not None
        self._mtp.forward(self._hidden[:-1], self._tokens)
        self._hidden, self._tokens = self._hidden[-1:].copy(), []

    # ---- the proposal

    def _recurse(self, out: FloatArray, prefix: list[int], limit: int, sampler: Sampler, cancel: CancelToken) -> Draft:
        for token in prefix:
            cancel.check()
            out = self._mtp.forward(out, [token])
        tokens: list[int] = []
        rows: list[Row] = []
        note = ""
        for _ in range(limit):
            cancel.check()
            if tokens:
                out = self._mtp.forward(out, tokens[-1:])
            try:
                row = self._row(out, prefix + tokens, sampler)
            except NumericsError:
                note = "The draft layer gave numbers that are not finite; drafting stopped there."
                break
            rows.append(row)
            tokens.append(row.draw(Purpose.DRAFT))
            if tokens[-1] in self._end_tokens:
                break
        return _draft(tokens, rows, len(prefix) + max(1, len(tokens)), note, sampler.greedy)

    def _row(self, out: FloatArray, ahead: Sequence[int], sampler: Sampler) -> Row:
        logits = self._mtp.logits(out)[0]
        if self._head_order is not None:
            logits = logits[self._head_order]
        return sampler.row(logits, ahead, self._head_ids)


def _draft(tokens: Sequence[int], rows: Sequence[Row], passes: int, note: str, greedy: bool) -> Draft:
    """The draft of `tokens`, each drawn from its row."""
    distributions: list[Distribution | None] = [None if greedy else row.distribution for row in rows]
    sources: list[Source] = ["mtp"] * len(tokens)
    return Draft(
        tokens=tuple(tokens),
        sources=tuple(sources),
        distributions=tuple(distributions),
        note=note,
        passes=passes,
        probabilities=tuple(row.probability(token) for row, token in zip(rows, tokens, strict=True)),
        alternatives=tuple(row.alternatives() for row in rows),
    )
