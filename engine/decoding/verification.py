"""The verdict on a round's drafts: keep the longest acceptable prefix, then one token of the model's own."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from engine.decoding.distribution import Distribution
from engine.decoding.protocols import Draft, FloatArray
from engine.decoding.randomness import Purpose
from engine.decoding.sampler import Row, Sampler


@dataclass(frozen=True, slots=True)
class Said:
    """A token, with what the model thought of its place."""

    token: int
    probability: float
    """The model's probability of the token, as `Row.probability` shows it."""
    alternatives: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a draft."""

    judged: tuple[Said, ...]
    """The drafts that were tested, in order; all but the last are accepted."""
    uniforms: tuple[float | None, ...]
    """For each of them the random number that decided; None when greedy."""
    accepted: int
    next: Said | None
    """The model's own token after the accepted ones: a correction if a draft was refused, else a bonus. None if the
    last accepted token ends the reply."""


def verify(draft: Draft, logits: FloatArray, sampler: Sampler, end_tokens: Container[int] = ()) -> Verification:
    """Judge `draft` by the model's logits [k + 1, V], whose row i follows the first i drafts.

    Greedy: a draft is accepted iff it is what the model would have said. Sampling: token x from draft distribution q is
    accepted with probability min(1, p(x) / q(x)), and a refused one replaced by a draw from max(0, p − q), normalised:
    then every token has exactly the model's distribution p (Leviathan, Kalman and Matias, "Fast Inference from
    Transformers via Speculative Decoding", 2023).

    Raises:
        NumericsError: a row that had to be looked at is not finite.
    """
    judged: list[Said] = []
    uniforms: list[float | None] = []
    for i, (token, q) in enumerate(zip(draft.tokens, draft.distributions, strict=True)):
        row = sampler.row(logits[i], ahead=draft.tokens[:i])
        accepted, chance, replacement = judge(row, token, q, sampler.greedy)
        judged.append(said(row, token))
        uniforms.append(chance)
        if not accepted:
            return Verification(tuple(judged), tuple(uniforms), i, said(row, replacement))
        if token in end_tokens:
            return Verification(tuple(judged), tuple(uniforms), i + 1, None)
    row = sampler.row(logits[len(draft.tokens)], ahead=draft.tokens)
    bonus = said(row, row.draw(Purpose.TARGET))
    return Verification(tuple(judged), tuple(uniforms), len(judged), bonus)


def accepts(p: float, q: float, chance: float) -> bool:
    """The acceptance rule. A token that the model cannot say is refused, whatever the drafter claims about it."""
    return p > 0 and (p >= q or chance < p / q)


def judge(row: Row, token: int, q: Distribution | None, greedy: bool) -> tuple[bool, float | None, int]:
    """(accepted, the random number that decided, what the model says if not)."""
    if greedy:
        return token == row.best, None, row.best
    chance = row.uniform(Purpose.ACCEPT)
    claimed = 1.0 if q is None else q.probability(token)  # None: n-gram lookup, the token was no draw
    if accepts(row.distribution.probability(token), claimed, chance):
        return True, chance, token
    return False, chance, row.distribution.residual(q, token).sample(row.uniform(Purpose.TARGET))


def said(row: Row, token: int) -> Said:
    """`token` with what the model thought of it, and of others."""
    return Said(token, row.probability(token), row.alternatives())
