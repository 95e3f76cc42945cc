"""O-35: the same reply again, without drafts, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.decoding.sampler import Sampler
from engine.decoding.selfcheck import SelfCheck, check_reply
from engine.errors import Cancelled
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from tests.engine.decoding.running import Run, reply
from tests.engine.decoding.scripted import Language, RandomDrafter, ScriptedTarget

PROMPT = [1, 2, 3, 4]
LANGUAGE = Language(seed=3)


def run(sampling: SamplingOptions, language: Language = LANGUAGE, length: int = 14) -> Run:
    options = GenerateOptions(sampling, DraftOptions("mtp", length), max_new_tokens=40)
    return reply(language, PROMPT, options, RandomDrafter(language, right=0.9), keep_rows=True)


def check(done: Run, sampling: SamplingOptions, language: Language = LANGUAGE, **keywords: object) -> SelfCheck:
    target = ScriptedTarget(language)
    logits = target.logits(target.forward(PROMPT))[-1]
    return check_reply(target, logits, done.decoder.rows, Sampler(sampling, PROMPT), **keywords)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sampling",
    [SamplingOptions(), SamplingOptions(presence_penalty=1.0), SamplingOptions(1.0, top_k=5)],
    ids=["greedy", "penalised", "sampled"],
)
def test_o35_a_sound_reply_passes(sampling: SamplingOptions) -> None:
    done = run(sampling)
    assert [row.token for row in done.decoder.rows] == list(done.tokens)
    assert [row.position for row in done.decoder.rows] == list(range(4, 44))
    result = check(done, sampling)
    assert result.passed
    assert result.rows == result.identical_rows == 40


def test_o35_the_first_row_that_differs_is_reported() -> None:
    class Drifting(Language):
        def logits(self, state: int, salt: int = 0) -> np.ndarray:
            row = super().logits(state, salt)
            if state == drifted:
                row[int(np.argmax(row))] -= 0.125
            return row

    done = run(SamplingOptions())
    drifted = LANGUAGE.state([*PROMPT, *done.tokens[:7]][-4:])
    result = check(done, SamplingOptions(), Drifting(seed=3))
    assert not result.passed
    assert result.first is not None
    assert result.first.position == len(PROMPT) + 7
    assert result.first.token == result.first.reply_argmax == done.tokens[7]
    assert result.first.largest_logit_difference == pytest.approx(0.125)
    assert result.identical_rows < result.rows


def test_o35_a_wrong_token_is_noticed_though_all_bits_agree() -> None:
    done = run(SamplingOptions())
    result = check(done, SamplingOptions(logit_bias={done.tokens[5]: -9.0}))
    assert result.first is not None
    assert result.first.token != result.first.plain_token


def test_progress_and_cancel() -> None:
    done, seen = run(SamplingOptions()), []
    check(done, SamplingOptions(), progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (40, 40)
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        check(done, SamplingOptions(), cancel=cancel)


def test_rows_are_kept_only_when_asked_for() -> None:
    options = GenerateOptions(max_new_tokens=5)
    assert reply(LANGUAGE, PROMPT, options, RandomDrafter(LANGUAGE)).decoder.rows == []
