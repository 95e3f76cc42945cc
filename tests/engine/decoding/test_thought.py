"""Thoughts that have to end: by their budget or on demand, with and without drafts alike."""

from __future__ import annotations

import numpy as np
import pytest

from engine.cancel import AnswerNow
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.protocols import Drafter
from engine.decoding.reply import ThinkTokens
from engine.decoding.sampler import Sampler
from engine.decoding.selfcheck import check_reply
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from tests.engine.decoding.running import PLAIN, Run, make, reply
from tests.engine.decoding.scripted import Language, RandomDrafter, ScriptedMtp, ScriptedTarget

PROMPT = [1, 2, 3, 4, 5]
DRAFT = DraftOptions("mtp", 9)
OPEN, CLOSE, ENDING = 20, 21, (6, 21, 6)


class Untagged(Language):
    """Says neither tag by itself."""

    def logits(self, state: int, salt: int = 0) -> np.ndarray:
        row = super().logits(state, salt)
        row[[OPEN, CLOSE]] = -50
        return row


LANGUAGE = Untagged(seed=7)


def options(budget: int | None, draft: DraftOptions = DRAFT, **sampling: object) -> GenerateOptions:
    return GenerateOptions(SamplingOptions(**sampling), draft, max_new_tokens=40, think_budget=budget)  # type: ignore[arg-type]


def run(chosen: GenerateOptions, drafter: Drafter | None = None, **keywords: object) -> Run:
    think = ThinkTokens(OPEN, CLOSE, ENDING)
    return reply(LANGUAGE, PROMPT, chosen, drafter, think=think, thinking=True, **keywords)  # type: ignore[arg-type]


def drafters() -> dict[str, Drafter]:
    return {
        "right": RandomDrafter(LANGUAGE, right=1.0),
        "random": RandomDrafter(LANGUAGE, right=0.7, fewer=True),
        "mtp": MtpDrafter(ScriptedMtp(LANGUAGE, salt_every=5)),
        "ngram": NgramDrafter(),
    }


@pytest.mark.parametrize("budget", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("name", drafters())
def test_a_budget_closes_the_thought_at_the_same_token_whatever_drafts(budget: int, name: str) -> None:
    plain = run(options(budget, PLAIN))
    assert plain.tokens[budget : budget + 3] == ENDING
    phases = [c.phase for r in plain.rounds for c in r.committed]
    assert phases == ["think"] * (budget + 2) + ["answer"] * (40 - budget - 2)
    drafted = run(options(budget), drafters()[name])
    assert drafted.tokens == plain.tokens
    assert [c.phase for r in drafted.rounds for c in r.committed] == phases
    assert drafted.decoder.thought_closed == "budget"
    assert drafted.target.tokens == [*PROMPT, *drafted.tokens[:-1]]


def test_drafting_goes_on_in_the_answer() -> None:
    done = run(options(6), RandomDrafter(LANGUAGE, right=1.0))
    assert sum(len(r.committed) > 4 for r in done.rounds if r.phase == "answer") >= 2


def test_a_thought_that_fits_is_left_alone() -> None:
    done = run(options(None), RandomDrafter(LANGUAGE, right=1.0))
    assert not done.decoder.thought_closed
    assert run(options(40, PLAIN)).tokens == done.tokens


def test_without_a_thought_there_is_nothing_to_close() -> None:
    answered = reply(LANGUAGE, PROMPT, options(0, PLAIN), think=ThinkTokens(OPEN, CLOSE, ENDING))
    assert answered.tokens == run(options(None, PLAIN)).tokens


def test_answer_now_closes_the_thought_before_the_next_round() -> None:
    drafter, ask = RandomDrafter(LANGUAGE, right=1.0), AnswerNow()
    think = ThinkTokens(OPEN, CLOSE, ENDING)
    decoder, _, logits = make(LANGUAGE, PROMPT, options(None), drafter, think=think, thinking=True)
    said = []
    for record in decoder.run(logits, answer_now=ask):
        said.append([c.token for c in record.committed])
        if record.index == 1:
            ask.ask()
    assert tuple(said[2]) == ENDING
    assert decoder.thought_closed == "asked"
    before = len(said[0]) + len(said[1])
    assert decoder.tokens == run(options(before, PLAIN)).tokens


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_end_of_the_context_inside_the_ending(room: int) -> None:
    target = ScriptedTarget(LANGUAGE, len(PROMPT) + 4 + room)
    done = run(options(4), RandomDrafter(LANGUAGE, right=1.0), target=target)
    assert done.decoder.stop_reason == "context"
    assert target.position == target.context


def test_the_number_of_tokens_stays_exact_inside_the_ending() -> None:
    chosen = GenerateOptions(max_new_tokens=6, think_budget=4)
    assert len(run(chosen, RandomDrafter(LANGUAGE, right=1.0)).tokens) == 6


def test_penalties_and_samples_stay_those_of_plain_decoding() -> None:
    chosen = {"presence_penalty": 1.3, "frequency_penalty": 0.4}
    plain = run(options(9, PLAIN, **chosen))
    assert run(options(9, **chosen), RandomDrafter(LANGUAGE, right=0.8)).tokens == plain.tokens


def test_o35_the_self_check_knows_that_the_ending_was_forced() -> None:
    done = run(options(9), RandomDrafter(LANGUAGE, right=0.9), keep_rows=True)
    target = ScriptedTarget(LANGUAGE)
    logits = target.logits(target.forward(PROMPT))[-1]
    assert [row.forced for row in done.decoder.rows] == [False] * 9 + [True] * 3 + [False] * 28
    assert any(row.argmax != row.token for row in done.decoder.rows if row.forced)
    assert check_reply(target, logits, done.decoder.rows, Sampler(SamplingOptions(), PROMPT)).passed


def test_the_policy_learns_nothing_from_forced_rounds() -> None:
    class Listening:
        def __init__(self) -> None:
            self.outcomes: list[object] = []

        def choose(self, phase: str) -> int:
            return 3

        def observe(self, outcome: object) -> None:
            self.outcomes.append(outcome)

    policy = Listening()
    done = run(options(9), RandomDrafter(LANGUAGE, right=0.9), policy=policy)
    assert len(policy.outcomes) == len(done.rounds) - 2  # the prompt's own round, and the ending's
