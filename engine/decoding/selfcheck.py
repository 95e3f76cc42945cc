"""Proof on demand: the same reply once more, without drafts, one token at a time, compared bit by bit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.cancel import CancelToken
from engine.decoding.protocols import FloatArray, IntArray, TargetModel
from engine.decoding.sampler import Sampler
from engine.kernels.logits import argmax, top_k

_KEPT = 16  # highest logits kept of each row: whole rows of a long reply would take gigabytes


@dataclass(frozen=True, slots=True)
class VerifiedRow:
    """What is kept of a row of logits that gave a token of the reply."""

    position: int
    """Of the token that the row gave."""
    token: int
    """The token itself."""
    argmax: int
    digest: bytes
    """Of all the row's bits."""
    top_ids: IntArray
    """[n] ids of the highest logits, descending."""
    top_logits: FloatArray
    """[n]"""
    forced: bool = False
    """The token was none of the model's choice: it closes a thought that had to end."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the two runs part."""

    position: int
    token: int
    """In the reply."""
    plain_token: int
    """What plain decoding says there; when sampling, its most likely token."""
    reply_argmax: int
    plain_argmax: int
    largest_logit_difference: float
    """Over the reply's 16 highest logits of the row; 0 if only lower ones differ."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The result."""

    rows: int
    """Rows compared."""
    identical_rows: int
    """Of these, equal in every bit."""
    first: Difference | None
    """The first row that differs in a bit or, when greedy, in its token."""

    @property
    def passed(self) -> bool:
        return self.first is None and self.identical_rows == self.rows


def verified_row(position: int, token: int, logits: FloatArray, forced: bool = False) -> VerifiedRow:
    """What the self check needs of `logits` [V], the row that gave `token` at `position`."""
    ids, values = top_k(logits, min(_KEPT, len(logits)))
    digest = hashlib.blake2b(logits.tobytes(), digest_size=16).digest()
    return VerifiedRow(position, token, int(argmax(logits)), digest, np.array(ids), np.array(values), forced)


def check_reply(
    target: TargetModel,
    logits: FloatArray,
    rows: Sequence[VerifiedRow],
    sampler: Sampler,
    cancel: CancelToken | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SelfCheck:
    """Replay a reply and compare each row that gave a token.

    Args:
        target: has read the prompt as it was before the reply, and nothing more. It reads the reply.
        logits: [V], those after the prompt's last token, from that target.
        rows: `Decoder.rows` of the reply, one a token.
        sampler: new, with the reply's options and prompt. Greedy tokens, penalties included, are compared too; sampled
            ones cannot be, as drafting takes other random numbers, and their rows are.
        progress: called with (rows done, rows in all).

    Raises:
        Cancelled, or any error of the model.
    """
    identical = 0
    first: Difference | None = None
    for done, row in enumerate(rows):
        own = verified_row(row.position, row.token, logits)
        plain = sampler.row(logits).best
        identical += own.digest == row.digest
        wrong = sampler.greedy and not row.forced and plain != row.token
        if first is None and (own.digest != row.digest or wrong):
            first = _difference(row, own, plain, logits)
        sampler.commit([row.token])
        if progress:
            progress(done + 1, len(rows))
        if done + 1 < len(rows):
            logits = target.logits(target.forward([row.token], cancel))[0]
    return SelfCheck(len(rows), identical, first)


def _difference(row: VerifiedRow, own: VerifiedRow, plain: int, logits: FloatArray) -> Difference:
    largest = float(np.abs(logits[row.top_ids] - row.top_logits).max())
    return Difference(row.position, row.token, plain, row.argmax, own.argmax, largest)
