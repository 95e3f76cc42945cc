"""Two drafters, one draft a round: each has its turn when it promises more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.sampler import Sampler
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from tests.engine.decoding.running import Run, reply
from tests.engine.decoding.scripted import Language, ScriptedMtp, mix


class Prose(Language):
    """Few words, so that lookups find much; but what comes depends on all that was said, so that they are wrong."""

    def __init__(self) -> None:
        super().__init__(6, seed=4)

    def step(self, state: int, token: int) -> int:
        return mix(state ^ (token + 1))


class Copying(Language):
    """Repeats a long text."""

    def __init__(self) -> None:
        super().__init__(40, order=1)

    def logits(self, state: int, salt: int = 0) -> np.ndarray:
        row = np.zeros(40, np.float32)
        row[(state & 0xFFFF) % 40 if not salt else mix(state) % 40] = 5
        return row


def run(language: Language, kind: str, salt_every: int, prompt: list[int], new: int = 300) -> Run:
    mtp, ngram = MtpDrafter(ScriptedMtp(language, salt_every)), NgramDrafter()
    drafter = {"mtp": mtp, "ngram": ngram, "mtp+ngram": CombinedDrafter(mtp, ngram)}[kind]
    options = GenerateOptions(draft=DraftOptions("mtp", 5), max_new_tokens=new)
    return reply(language, prompt, options, drafter)


def sources(done: Run) -> Counter[str]:
    return Counter(d.source for r in done.rounds for d in r.drafts)


def test_copying_is_left_to_lookup_and_wins_clearly() -> None:
    prompt = list(range(40)) * 2
    both, mtp = (run(Copying(), kind, 3, prompt) for kind in ("mtp+ngram", "mtp"))
    assert both.tokens == mtp.tokens
    assert both.decoder.stats.tokens_per_round > 1.5 * mtp.decoder.stats.tokens_per_round
    assert sources(both)["ngram"] > sources(both)["mtp"]
    assert both.decoder.stats.draft_passes < 0.2 * mtp.decoder.stats.draft_passes


def test_prose_is_left_to_the_draft_layer_and_costs_nothing() -> None:
    """Fewer than 3 % more rounds than with the draft layer alone, and no more draft passes."""
    prompt = [int(t) for t in np.random.default_rng(1).integers(0, 6, 200)]
    language = Prose()
    both, mtp = (run(language, kind, 4, prompt, 900) for kind in ("mtp+ngram", "mtp"))
    assert both.tokens == mtp.tokens
    assert both.decoder.stats.rounds <= 1.03 * mtp.decoder.stats.rounds
    assert both.decoder.stats.draft_passes <= 1.03 * mtp.decoder.stats.draft_passes
    assert sources(both)["mtp"] > 5 * sources(both)["ngram"]


def test_a_turn_lost_in_prose_is_won_back_by_copying() -> None:
    """Lookups are judged though they are not used, so no trial is needed."""
    ngram = NgramDrafter()
    drafter = CombinedDrafter(MtpDrafter(ScriptedMtp(Copying(), 2)), ngram)
    for estimate in drafter._ngram_acceptance.values():
        for _ in range(20):
            estimate.add(1, 0)
    options = GenerateOptions(draft=DraftOptions("mtp", 5), max_new_tokens=400)
    done = reply(Copying(), list(range(40)) * 2, options, drafter)
    assert {d.source for r in done.rounds[1:4] for d in r.drafts} == {"mtp"}
    assert {d.source for r in done.rounds[-5:-1] for d in r.drafts} == {"ngram"}


def test_a_short_lookup_is_extended_by_the_draft_layer() -> None:
    """The lookup ends where the text ends; the draft layer runs along and goes on. Every token keeps its source."""
    language = Language(24, seed=3, order=2)
    mtp = ScriptedMtp(language)
    drafter = CombinedDrafter(MtpDrafter(mtp), NgramDrafter())
    for round_ in range(40):  # lookups are right once and then wrong; the draft layer wrong in every fourth round
        drafter._ngram_acceptance[2].add(2, 1)
        drafter._mtp_acceptance.add(*((5, 4) if round_ % 4 else (1, 0)))
    text = [9, 5, 5]
    reply(language, text, GenerateOptions(max_new_tokens=1), drafter)
    draft = drafter.propose(5, 4, Sampler(SamplingOptions()))
    assert draft.sources == ("ngram", "mtp", "mtp", "mtp")
    assert draft.tokens[0] == 5
    said = [*text, 5, 5]
    for token in draft.tokens[1:]:
        assert token == int(np.argmax(language.logits(language.state(said[-4:]))))
        said.append(token)
    assert draft.distributions[0] is None
    assert draft.probabilities[0] is None
    assert len(draft.probabilities) == 4
    assert draft.passes == 4
    assert mtp.position == len(text)


@pytest.mark.parametrize("known", [1, 2])
def test_both_together_draft_what_the_draft_layer_would_after_the_lookup(known: int) -> None:
    language = Language(24, seed=3, order=2)
    text = [1, 5, 2, 7, 9, 3, 3, 8]
    mtp = MtpDrafter(ScriptedMtp(language))
    reply(language, text, GenerateOptions(max_new_tokens=1), mtp)
    prefix = [11, 12][:known]
    draft = mtp.propose_after(prefix, 4, 3, Sampler(SamplingOptions()))
    said = [*text, 4, *prefix]
    for token in draft.tokens:
        assert token == int(np.argmax(language.logits(language.state(said[-4:]))))
        said.append(token)
    assert draft.passes == known + 3
    assert mtp._mtp.position == len(text)
