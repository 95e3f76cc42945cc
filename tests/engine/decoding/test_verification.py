"""The verdict: greedy equality, and exactness under sampling whatever the drafter."""

from __future__ import annotations

import numpy as np
import pytest

from engine.decoding.distribution import Distribution
from engine.decoding.protocols import Draft
from engine.decoding.randomness import Purpose, uniform
from engine.decoding.sampler import Sampler
from engine.decoding.verification import accepts, judge, verify
from engine.errors import NumericsError
from engine.options import SamplingOptions
from tests.engine.decoding.chi_squared import deviation

V = 12
TARGET = np.random.default_rng(1).normal(0, 1.5, V).astype(np.float32)
DRAFT = np.random.default_rng(2).normal(0, 1.5, V).astype(np.float32)


def spoken(p: Distribution, q: Distribution | int, draws: int, seed: int) -> np.ndarray:
    """How often each token came when drafts from `q` (or a certain token) were judged `draws` times: `judge`, with each
    token's residual computed once."""
    counts = np.zeros(V, np.int64)
    certain = isinstance(q, int)
    chances = {token: (p.probability(token), 1.0 if certain else q.probability(token)) for token in range(V)}
    rest = {token: p.residual(None if certain else q, token) for token in ([q] if certain else q.ids.tolist())}
    for i in range(draws):
        token = q if certain else q.sample(uniform(seed, i, 0, Purpose.DRAFT))
        chance = uniform(seed, i, 0, Purpose.ACCEPT)
        if not accepts(*chances[token], chance):
            token = rest[token].sample(uniform(seed, i, 0, Purpose.TARGET))
        counts[token] += 1
    return counts


def dense(p: Distribution) -> np.ndarray:
    return p.at(np.arange(V))


def test_judge_does_what_is_counted_below() -> None:
    sampler = Sampler(SamplingOptions(0.9, top_k=6, seed=11))
    row, draft_row = sampler.row(TARGET), sampler.row(DRAFT)
    p, q = row.distribution, draft_row.distribution
    counts = np.zeros(V, np.int64)
    for _ in range(500):
        token = draft_row.draw(Purpose.DRAFT)
        accepted, _, replacement = judge(row, token, q, greedy=False)
        counts[token if accepted else replacement] += 1
        sampler.commit((0,))  # the next random numbers
    assert counts.tolist() == spoken(p, q, 500, seed=11).tolist()


def test_o29_400_000_draws_match_the_target() -> None:
    """Top-k 6 on the target: the drafter, which knows no top-k, proposes tokens that the target never says."""
    p = Sampler(SamplingOptions(0.9, top_k=6)).row(TARGET).distribution
    q = Sampler(SamplingOptions(1.3)).row(DRAFT).distribution
    assert set(q.ids.tolist()) - set(p.ids.tolist())
    assert deviation(spoken(p, q, 400_000, seed=11), dense(p)) < 4


@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(1.0),
        SamplingOptions(0.7, top_k=4),
        SamplingOptions(1.2, top_p=0.8),
        SamplingOptions(1.0, min_p=0.1),
        SamplingOptions(0.8, top_k=9, top_p=0.9, min_p=0.02, repetition_penalty=1.2, presence_penalty=0.5),
        SamplingOptions(1.0, logit_bias={1: 2.0, 4: -3.0}),
    ],
    ids=["temperature", "top-k", "top-p", "min-p", "everything", "bias"],
)
def test_o29_every_sampler_setting_is_exact(options: SamplingOptions) -> None:
    sampler = Sampler(options, prompt=[3, 5])
    p, q = sampler.row(TARGET).distribution, sampler.row(DRAFT).distribution
    assert deviation(spoken(p, q, 20_000, seed=5), dense(p)) < 4


def test_o29_a_trimmed_draft_head_is_exact() -> None:
    ids = np.array([1, 2, 7, 8])
    sampler = Sampler(SamplingOptions(1.0, top_k=8))
    p, q = sampler.row(TARGET).distribution, sampler.row(DRAFT[ids], ids=ids).distribution
    assert deviation(spoken(p, q, 20_000, seed=8), dense(p)) < 4


@pytest.mark.parametrize("token", [int(np.argmax(TARGET)), int(np.argmin(TARGET))])
def test_o29_a_certain_draft_is_exact(token: int) -> None:
    """N-gram lookup claims q = 1, for a likely token and for one that the target cannot say."""
    p = Sampler(SamplingOptions(1.0, top_k=8)).row(TARGET).distribution
    assert deviation(spoken(p, token, 20_000, seed=9), dense(p)) < 4


def test_the_count_notices_a_wrong_rule() -> None:
    """Drawing the replacement from p, not from the residual, is the classic fault: the test must see it."""
    p = Sampler(SamplingOptions(0.9, top_k=6)).row(TARGET).distribution
    q = Sampler(SamplingOptions(1.3)).row(DRAFT).distribution
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Distribution, "residual", lambda self, draft, token: self)
        assert deviation(spoken(p, q, 20_000, seed=11), dense(p)) > 10


def test_o29_several_places_are_jointly_exact() -> None:
    """Whole rounds: what is said at two places together, where the second row depends on the first token."""
    vocabulary = 5
    rows = np.random.default_rng(3).normal(0, 1.2, (vocabulary + 1, vocabulary)).astype(np.float32)
    wrong = np.random.default_rng(4).normal(0, 1.2, (vocabulary + 1, vocabulary)).astype(np.float32)
    sampler = Sampler(SamplingOptions(1.0, top_k=4, seed=5))
    counts = np.zeros((vocabulary, vocabulary), np.int64)
    for _ in range(5_000):
        sampler.commit((0,))
        q1 = sampler.row(wrong[-1])
        d1 = q1.draw(Purpose.DRAFT)
        q2 = sampler.row(wrong[d1], (d1,))
        d2 = q2.draw(Purpose.DRAFT)
        draft = Draft((d1, d2), ("mtp", "mtp"), (q1.distribution, q2.distribution))
        verdict = verify(draft, np.stack([rows[-1], rows[d1], rows[d2]]), sampler)
        said = [j.token for j in verdict.judged[: verdict.accepted]] + [verdict.next.token]
        if len(said) == 1:  # the round ended: the next one begins after this token
            sampler.commit((0,))
            said.append(sampler.row(rows[said[0]]).draw(Purpose.TARGET))
        counts[said[0], said[1]] += 1
    fresh = Sampler(SamplingOptions(1.0, top_k=4))
    p = np.stack([fresh.row(row).distribution.at(np.arange(vocabulary)) for row in rows])
    assert deviation(counts.ravel(), (p[-1][:, None] * p[:-1]).ravel()) < 4


def test_the_rule() -> None:
    assert accepts(0.5, 0.5, 0.999)
    assert accepts(0.2, 0.4, 0.49)
    assert not accepts(0.2, 0.4, 0.5)
    assert not accepts(0.0, 0.0, 0.0)  # a drafter that is wrong about itself makes the model say nothing impossible


def greedy_draft(*tokens: int) -> Draft:
    return Draft(tokens, ("mtp",) * len(tokens), (None,) * len(tokens))


def one_hot(*tokens: int) -> np.ndarray:
    return np.eye(V, dtype=np.float32)[list(tokens)] * 5


def test_o30_greedy_accepts_iff_it_is_the_argmax() -> None:
    verdict = verify(greedy_draft(3, 4, 5), one_hot(3, 9, 5, 6), Sampler(SamplingOptions()))
    assert verdict.accepted == 1
    assert [said.token for said in verdict.judged] == [3, 4]
    assert verdict.next.token == 9
    assert verdict.uniforms == (None, None)


def test_l09_full_acceptance_gives_a_bonus_token() -> None:
    verdict = verify(greedy_draft(3, 4), one_hot(3, 4, 7), Sampler(SamplingOptions()))
    assert (verdict.accepted, verdict.next.token) == (2, 7)


def test_no_draft_is_plain_decoding() -> None:
    verdict = verify(greedy_draft(), one_hot(8), Sampler(SamplingOptions()))
    assert (verdict.accepted, verdict.judged, verdict.next.token) == (0, (), 8)


def test_l09_an_accepted_end_token_needs_no_bonus() -> None:
    logits = one_hot(3, 4, 7)
    logits[2] = np.nan  # never looked at
    verdict = verify(greedy_draft(3, 4), logits, Sampler(SamplingOptions()), end_tokens={4})
    assert (verdict.accepted, verdict.next) == (2, None)


def test_rows_after_a_refusal_are_not_looked_at() -> None:
    logits = one_hot(3, 9, 7)
    logits[2] = np.nan
    assert verify(greedy_draft(3, 4), logits, Sampler(SamplingOptions())).next.token == 9


def test_a_row_that_counts_must_be_finite() -> None:
    logits = one_hot(3, 4, 7)
    logits[1, 0] = np.nan
    with pytest.raises(NumericsError, match="position 1"):
        verify(greedy_draft(3, 4), logits, Sampler(SamplingOptions()))


def test_every_row_sees_the_drafts_before_it() -> None:
    """With a presence penalty a repeated draft must be judged as plain decoding would."""
    logits = one_hot(3, 3, 3)
    logits[:, 6] = 4
    verdict = verify(greedy_draft(3, 3), logits, Sampler(SamplingOptions(presence_penalty=2.0)))
    assert (verdict.accepted, verdict.next.token) == (1, 6)
