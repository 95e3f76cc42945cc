"""Faults that people reported against programs of this kind, each excluded by a test.

In brackets: the public issue that tells the story.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from engine.decoding.closure import generate_with_speculation, verify_draft
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.sampler import Sampler
from engine.errors import NumericsError
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from tests.engine.decoding.running import make, plain, reply
from tests.engine.decoding.scripted import Language, RandomDrafter, ScriptedMtp, ScriptedTarget

PROMPT = [1, 2, 3, 4, 5]


def options(length: int = 3, new: int = 60, **sampling: object) -> GenerateOptions:
    return GenerateOptions(SamplingOptions(**sampling), DraftOptions("mtp", length), max_new_tokens=new)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", range(15))
def test_greedy_text_is_the_same_with_mtp_on(length: int) -> None:
    """(llama.cpp#23302, #25618)"""
    language = Language(seed=7)
    run = reply(language, PROMPT, options(length), MtpDrafter(ScriptedMtp(language, salt_every=4)))
    assert run.tokens == plain(language, PROMPT, options()).tokens


def test_rollback_after_any_mix_of_lengths_and_refusals() -> None:
    """A stale state restored after single-token steps (llama.cpp#29117). The scripted target checks every rollback."""
    language = Language(seed=7)
    run = reply(language, PROMPT, options(9, 200), RandomDrafter(language, 3, right=0.7, fewer=True))
    assert {len(r.drafts) for r in run.rounds} >= {0, 1, 5, 9}
    assert run.tokens == plain(language, PROMPT, options(new=200)).tokens


class Counting(Language):
    """Counts: 1, 2, 3, …"""

    def logits(self, state: int, salt: int = 0) -> np.ndarray:
        row = np.zeros(self.vocabulary, np.float32)
        row[(state & 0xFFFF) % self.vocabulary] = 5  # codes are token + 1
        return row


def test_counting_loses_no_number() -> None:
    """The token after a refused draft was skipped (mlx-lm#846)."""
    language = Counting(64, order=1)
    run = reply(language, [0], options(4, 40), RandomDrafter(language, 1, right=0.5))
    assert list(run.tokens) == list(range(1, 41))
    position = 1
    for record in run.rounds:
        assert record.position == position
        position += len(record.committed)


def test_drafts_come_from_the_right_hidden_states() -> None:
    """Fluent text, but low acceptance (Rapid-MLX#3371, LightLLM#1402). The scripted layer is right on right pairs."""
    language = Language(seed=7)
    assert reply(language, PROMPT, options(5), MtpDrafter(ScriptedMtp(language))).decoder.stats.acceptance == 1.0


def test_a_thousand_rounds_keep_memory_flat() -> None:
    """Snapshots aliased the cache, slices pinned their parents (higgs#183, ollama#17077)."""
    language = Language(seed=7, order=1)
    decoder, _, logits = make(language, PROMPT, options(3, 5000), MtpDrafter(ScriptedMtp(language, salt_every=3)))
    sizes = []
    tracemalloc.start()
    try:
        for record in decoder.run(logits):
            if record.index in (100, 1000):
                sizes.append(tracemalloc.get_traced_memory()[0])
            if record.index == 1000:
                break
    finally:
        tracemalloc.stop()
    # The reply itself, its text and the scripted caches are lists: some hundred bytes a token.
    assert (sizes[1] - sizes[0]) / 900 < 2500


def test_the_first_ngram_draft_is_verified() -> None:
    """(ohdearquant/lattice#243)"""
    assert verify_draft([5], np.eye(9, dtype=np.float32)[[4, 6]]) == ([], 4)
    language = Language(seed=7)
    run = reply(language, [1, 2, 9, 1, 2], options(4), NgramDrafter())
    assert run.tokens == plain(language, [1, 2, 9, 1, 2], options()).tokens


def test_max_new_tokens_is_never_overrun_and_the_bonus_token_kept() -> None:
    """(ohdearquant/lattice#242, #389)"""
    cycle = lambda tokens, position: np.eye(9, dtype=np.float32)[[t % 4 + 1 for t in tokens]]  # noqa: E731
    result = generate_with_speculation([1, 2, 3, 4] * 3, 6, None, cycle)
    assert result.tokens == (1, 2, 3, 4, 1, 2)
    assert result.passes == 2  # one from the prompt, four drafts, and the bonus


@pytest.mark.parametrize(("kind", "sources"), [("mtp", {"mtp"}), ("ngram", {"ngram"}), ("both", {"mtp", "ngram"})])
def test_each_drafter_has_its_own_switch(kind: str, sources: set[str]) -> None:
    """One off turned the other off; both together crashed (kekzl/imp#1464, llama.cpp#27839)."""
    language = Language(8, seed=3, order=1)
    mtp, ngram = MtpDrafter(ScriptedMtp(language, salt_every=2)), NgramDrafter()
    drafter = {"mtp": mtp, "ngram": ngram, "both": CombinedDrafter(mtp, ngram)}[kind]
    run = reply(language, PROMPT, options(3, 80), drafter)
    assert {d.source for r in run.rounds for d in r.drafts} == sources
    assert run.tokens == plain(language, PROMPT, options(new=80)).tokens


@pytest.mark.parametrize("stop", ["w9 w", " w14", "4 w18 "])
def test_text_after_a_stop_inside_an_accepted_run_neither_leaks_nor_is_cut(stop: str) -> None:
    """(sglang#31599, vllm#47616)"""
    language = Language(seed=3)
    full = plain(language, PROMPT, options(12)).decoder.text
    assert stop in full
    chosen = replace(options(12), stop_strings=(stop,))
    run = reply(language, PROMPT, chosen, RandomDrafter(language, right=1.0))
    assert run.decoder.text == full[: full.index(stop)]
    assert run.decoder.stop_reason == "stop-string"
    assert run.target.tokens == [*PROMPT, *run.tokens[:-1]]


@pytest.mark.parametrize("penalty", ["repetition_penalty", "presence_penalty", "frequency_penalty"])
def test_penalties_see_the_accepted_drafts_of_the_same_run(penalty: str) -> None:
    """Ignored, or with the wrong history under speculation (TensorRT-LLM#17701, MTPLX#120)."""
    language = Language(10, seed=3)
    expected = plain(language, PROMPT, options(**{penalty: 1.6}))
    assert expected.tokens != plain(language, PROMPT, options()).tokens
    run = reply(language, PROMPT, options(8, **{penalty: 1.6}), MtpDrafter(ScriptedMtp(language, salt_every=5)))
    assert run.tokens == expected.tokens


def test_the_token_after_the_drafts_is_processed_too() -> None:
    """A processor was skipped for the bonus token (mlx-lm#1175): a banned token would slip in there."""
    language = Counting(32, order=1)
    chosen = options(3, 25, logit_bias={8: -100.0})
    run = reply(language, [0], chosen, RandomDrafter(language, right=1.0))
    assert 8 not in run.tokens
    assert run.tokens == plain(language, [0], chosen).tokens


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_after_a_while_stops_with_a_message_and_keeps_the_text(value: float) -> None:
    """Endless "!!!!" after a long session (llama.cpp#23606)."""
    language = Language(seed=3)
    target = ScriptedTarget(language)
    target.poison = {30: value}
    decoder, _, logits = make(language, PROMPT, options(3), RandomDrafter(language), target=target)
    rounds = []
    with pytest.raises(NumericsError, match="position 31 are not finite"):
        rounds += decoder.run(logits)
    said = decoder.tokens
    assert said == plain(language, PROMPT, options()).tokens[: len(said)]
    assert len(said) >= 20
    assert decoder.text
    assert target.tokens == [*PROMPT, *said[:-1]]


def test_argmax_takes_the_first_maximum_and_never_nan() -> None:
    """(lattice#375, #280)"""
    sampler = Sampler(SamplingOptions())
    assert sampler.row(np.array([1, 7, 7, 0], np.float32)).best == 1
    with pytest.raises(NumericsError):
        sampler.row(np.array([1, np.nan, 7, 0], np.float32))


def test_running_into_the_end_of_the_context_is_a_clean_stop() -> None:
    """(lattice#350)"""
    language = Language(seed=3)
    run = reply(language, PROMPT, options(14), RandomDrafter(language), target=ScriptedTarget(language, 20))
    assert run.decoder.stop_reason == "context"
    assert run.target.position == 20


def test_a_character_split_over_a_draft_boundary_comes_whole() -> None:
    """(exo#1691 and many) The four last tokens are the bytes of an emoji."""
    language = Counting(24, order=1)
    run = reply(language, [10], options(2, 16), RandomDrafter(language, 2, right=0.5))
    assert "🙂" in run.decoder.text
    assert "\ufffd" not in "".join(c.text for r in run.rounds for c in r.committed)


@pytest.mark.parametrize(("new", "stops", "tail"), [(3, (), "\ufffd"), (1, ("9 never",), "w19 ")])
def test_what_was_held_back_comes_with_the_last_token(new: int, stops: tuple[str, ...], tail: str) -> None:
    """An unfinished character, and the beginning of a stop string, when the reply ends by length."""
    chosen = replace(options(2, new), stop_strings=stops)
    run = reply(Counting(24, order=1), [18], chosen, NgramDrafter())
    assert run.rounds[-1].committed[-1].text.endswith(tail)
    assert "".join(c.text for r in run.rounds for c in r.committed) == run.decoder.text
