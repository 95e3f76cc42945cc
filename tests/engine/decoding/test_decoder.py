"""A reply by speculative decoding equals plain decoding, whatever drafts, and leaves the caches where they belong."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.records import DiskUse, Round, record_from_json, to_json
from engine.errors import NumericsError, ReadError
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from engine.weights.statistics import WeightStatistics
from tests.engine.decoding import naive_sampling
from tests.engine.decoding.chi_squared import deviation
from tests.engine.decoding.running import Run, make, plain, reply
from tests.engine.decoding.scripted import Language, RandomDrafter, ScriptedMtp, ScriptedTarget

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3]


def options(length: int = 3, new: int = 40, **sampling: object) -> GenerateOptions:
    return GenerateOptions(SamplingOptions(**sampling), DraftOptions("mtp", length), max_new_tokens=new)  # type: ignore[arg-type]


def make_drafter(kind: str, language: Language, seed: int = 0) -> object:
    mtp = MtpDrafter(ScriptedMtp(language, salt_every=3), {0})
    return {
        "mtp": mtp,
        "ngram": NgramDrafter({0}),
        "mtp+ngram": CombinedDrafter(mtp, NgramDrafter({0})),
        "right": RandomDrafter(language, seed, right=1.0),
        "random": RandomDrafter(language, seed, right=0.6),
        "wrong": RandomDrafter(language, seed, right=0.0),
        "uneven": RandomDrafter(language, seed, right=0.7, fewer=True),
    }[kind]


KINDS = ["mtp", "ngram", "mtp+ngram", "right", "random", "wrong", "uneven"]


def check_bookkeeping(run: Run, prompt: list[int]) -> None:
    """Positions are contiguous, records and caches agree."""
    position = len(prompt)
    for index, record in enumerate(run.rounds):
        assert record.index == index
        assert record.position == position
        assert len(record.drafts) <= record.draft_length
        position += len(record.committed)
    tokens = [c.token for record in run.rounds for c in record.committed]
    assert tuple(tokens) == run.tokens
    assert run.target.tokens == [*prompt, *tokens[:-1]], "the last token is committed, but not read"
    assert "".join(c.text for record in run.rounds for c in record.committed) == run.decoder.text
    for before, after in itertools.pairwise(run.rounds):
        assert before.next_draft_length == after.draft_length


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_o30_greedy_stream_equals_plain_whatever_drafts(data: st.DataObject) -> None:
    """Any drafter, length, policy, stop, limit, context and penalties."""
    language = Language(
        data.draw(st.sampled_from([8, 24])), data.draw(st.integers(0, 99)), data.draw(st.integers(1, 3))
    )
    kind = data.draw(st.sampled_from(KINDS))
    chosen = GenerateOptions(
        sampling=SamplingOptions(
            repetition_penalty=data.draw(st.sampled_from([1.0, 1.5])),
            presence_penalty=data.draw(st.sampled_from([0.0, 1.0])),
            frequency_penalty=data.draw(st.sampled_from([0.0, 0.7])),
            logit_bias=data.draw(st.sampled_from([{}, {2: 1.5}])),
        ),
        draft=DraftOptions(
            "mtp", data.draw(st.integers(1, 14)), data.draw(st.sampled_from(["fixed", "adaptive", "cost-aware"]))
        ),
        max_new_tokens=data.draw(st.integers(1, 50)),
        stop_strings=data.draw(st.sampled_from([(), ("w3 w",), ("5 w", "w2"), ("🙂",)])),
        ignore_eos=data.draw(st.booleans()),
    )
    end = data.draw(st.sampled_from([frozenset(), frozenset({6}), frozenset({1, 7})]))
    context = data.draw(st.sampled_from([1000, 25]))
    prompt = data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=12))

    expected = plain(language, prompt, chosen, end=end, target=ScriptedTarget(language, context))
    drafter = make_drafter(kind, language, data.draw(st.integers(0, 99)))
    run = reply(language, prompt, chosen, drafter, end, ScriptedTarget(language, context))
    assert run.tokens == expected.tokens
    assert run.decoder.text == expected.decoder.text
    assert run.decoder.stop_reason == expected.decoder.stop_reason
    check_bookkeeping(run, prompt)
    check_bookkeeping(expected, prompt)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("new", [1, 2, 3, 7, 20])
def test_o33_max_new_tokens_is_exact_and_never_drafted_past(kind: str, new: int) -> None:
    language = Language(seed=3)
    run = reply(language, PROMPT, options(14, new), make_drafter(kind, language))
    assert len(run.tokens) == new
    assert run.decoder.stop_reason == "length"
    said = 0
    for record in run.rounds:
        assert said + len(record.drafts) + 1 <= new
        said += len(record.committed)


def test_round_0_is_the_prompts_own_token() -> None:
    language = Language(seed=3)
    run = reply(language, PROMPT, options(), make_drafter("right", language))
    first = run.rounds[0]
    assert [c.origin for c in first.committed] == ["model"]
    assert first.drafts == ()
    assert run.target.passes == 1 + run.decoder.stats.target_passes  # the prompt, then one a round


def test_l09_a_first_draft_never_costs_a_pass_where_logits_are_at_hand() -> None:
    """The token after the prompt comes from the prompt's logits: one new token needs no pass of the model."""
    language = Language(seed=3)
    run = reply(language, PROMPT, options(3, new=1), make_drafter("wrong", language))
    assert run.target.passes == 1
    assert run.decoder.stats.drafted == 0


def test_origins_tell_how_each_token_came() -> None:
    language = Language(seed=3)
    run = reply(language, PROMPT, options(3, 60), make_drafter("random", language))
    seen = set()
    for record in run.rounds[1:]:
        accepted = sum(d.verdict == "accepted" for d in record.drafts)
        assert [c.origin for c in record.committed[:accepted]] == ["accepted"] * accepted
        for draft, token in zip(record.drafts[:accepted], record.committed, strict=False):
            assert (draft.token, draft.text, draft.source) == (token.token, token.text, token.source)
        last = record.committed[-1]
        refused = [d for d in record.drafts if d.verdict == "rejected"]
        assert last.origin == ("correction" if refused else "bonus" if record.drafts else "model")
        assert all(d.replacement == last.token for d in refused)
        assert len(refused) <= 1
        assert [d.verdict for d in record.drafts[accepted + len(refused) :]] == ["unused"] * (
            len(record.drafts) - accepted - len(refused)
        )
        seen.add(last.origin)
    assert seen == {"correction", "bonus"}


def test_l10_statistics_equal_a_manual_count() -> None:
    language = Language(seed=3)
    mtp = ScriptedMtp(language, salt_every=3)
    run = reply(language, PROMPT, options(4, 60), MtpDrafter(mtp))
    stats, rounds = run.decoder.stats, run.rounds[1:]
    drafts = [d for r in rounds for d in r.drafts]
    accepted = [sum(d.verdict == "accepted" for d in r.drafts) for r in rounds]
    assert stats.target_passes == stats.rounds == len(rounds) == run.target.passes - 1
    assert stats.draft_passes == mtp.passes
    assert stats.drafted == len(drafts)
    assert stats.accepted == sum(accepted)
    assert stats.tested == sum(d.verdict != "unused" for d in drafts)
    assert stats.emitted == len(run.tokens) == 60
    assert stats.tokens_per_round == pytest.approx(59 / len(rounds))
    assert stats.acceptance == stats.accepted / stats.tested
    assert sum(stats.accepted_histogram) == len(rounds)
    assert [accepted.count(n) for n in range(len(stats.accepted_histogram))] == list(stats.accepted_histogram)
    assert stats.draft_step_bytes == 4096


def test_o33_a_stop_inside_an_accepted_run_ends_there_and_is_no_refusal() -> None:
    language = Language(seed=3)
    expected = plain(language, PROMPT, options(new=40)).tokens
    end = frozenset({expected[6]})  # round 0 gives one token, round 1 six, the last of which ends the reply
    first = expected.index(expected[6])
    drafter = RandomDrafter(language, right=1.0)
    run = reply(language, PROMPT, options(10), drafter, end)
    assert run.tokens == expected[: first + 1]
    assert run.decoder.stop_reason == "end"
    assert run.rounds[-1].committed[-1].text == ""
    assert {d.verdict for d in run.rounds[1].drafts} == {"accepted", "unused"}
    stats = run.decoder.stats
    assert stats.acceptance == 1.0
    assert stats.tested == stats.accepted == first
    assert drafter.observed == [(first, first)]


def test_o26_the_stop_token_is_committed_but_never_read() -> None:
    language = Language(seed=3)
    expected = plain(language, PROMPT, options(new=40)).tokens
    run = reply(language, PROMPT, options(5), RandomDrafter(language, right=1.0), frozenset({expected[4]}))
    assert run.tokens[-1] == expected[4]
    assert run.target.tokens == [*PROMPT, *run.tokens[:-1]]
    assert run.decoder._drafter.tokens == run.target.tokens  # the drafter has seen exactly what was read


def test_ignore_eos_goes_on() -> None:
    language = Language(seed=3)
    expected = plain(language, PROMPT, options(new=30)).tokens
    run = reply(
        language,
        PROMPT,
        replace(options(5, new=30), ignore_eos=True),
        RandomDrafter(language, right=1.0),
        frozenset({expected[4]}),
    )
    assert run.tokens == expected


@pytest.mark.parametrize("room", [1, 2, 3, 9])
def test_a_full_context_is_a_clean_stop(room: int) -> None:
    language = Language(seed=3)
    target = ScriptedTarget(language, len(PROMPT) + room - 1)
    run = reply(language, PROMPT, options(14), RandomDrafter(language, right=1.0), target=target)
    assert run.decoder.stop_reason == "context"
    assert len(run.tokens) == room  # the last needs no place: it is not read
    assert target.position == target.context


def test_cancel_between_rounds_keeps_what_was_said() -> None:
    language = Language(seed=3)
    decoder, target, logits = make(language, PROMPT, options(3), RandomDrafter(language))
    cancel = CancelToken()
    rounds = []
    for record in decoder.run(logits, cancel):
        rounds.append(record)
        if len(rounds) == 4:
            cancel.cancel()
    assert len(rounds) == 4
    assert decoder.stop_reason == "cancelled"
    assert decoder.stats.stop_reason == "cancelled"
    check_bookkeeping(Run(decoder, target, rounds), PROMPT)


class CancelledInside(ScriptedTarget):
    """Stop is pressed while a pass is under way."""

    def __init__(self, language: Language, cancel: CancelToken, at: int) -> None:
        super().__init__(language)
        self._cancel, self._at = cancel, at

    def forward(self, tokens: object, cancel: CancelToken | None = None) -> np.ndarray:
        if self.passes + 1 == self._at:
            self._cancel.cancel()
        return super().forward(tokens, cancel)  # type: ignore[arg-type]


def test_cancel_inside_a_pass_leaves_the_state_before_the_round() -> None:
    language, cancel = Language(seed=3), CancelToken()
    drafter = RandomDrafter(language)
    decoder, target, logits = make(language, PROMPT, options(3), drafter, target=CancelledInside(language, cancel, 4))
    rounds = list(decoder.run(logits, cancel))
    assert decoder.stop_reason == "cancelled"
    check_bookkeeping(Run(decoder, target, rounds), PROMPT)
    assert drafter.tokens == target.tokens


def fail_in_target(target: ScriptedTarget, mtp: ScriptedMtp) -> None:
    target.fail_at[4] = ReadError("layers.3: the file went away.")


def fail_in_drafter(target: ScriptedTarget, mtp: ScriptedMtp) -> None:
    mtp.fail_at[7] = ReadError("mtp: the file went away.")


@pytest.mark.parametrize("fail", [fail_in_target, fail_in_drafter])
def test_an_error_inside_a_round_leaves_the_state_before_it(fail: object) -> None:
    language = Language(seed=3)
    expected = plain(language, PROMPT, options(new=40)).tokens
    mtp = ScriptedMtp(language)
    drafter = MtpDrafter(mtp)
    decoder, target, logits = make(language, PROMPT, options(3), drafter)
    fail(target, mtp)  # type: ignore[operator]
    rounds: list[Round] = []
    with pytest.raises(ReadError):
        rounds += decoder.run(logits)
    assert decoder.stop_reason == "failed"
    said = decoder.tokens
    assert 1 < len(said) < 40
    assert said == expected[: len(said)]
    assert target.tokens == [*PROMPT, *said[:-1]]
    # The same caches go on as if nothing had happened.
    more, _, _ = make(language, [*PROMPT, *said], options(3, new=40 - len(said)))
    hidden = target.forward([said[-1]])
    drafter.extend([said[-1]], hidden)
    more._target, more._drafter = target, drafter
    list(more.run(target.logits(hidden)[0]))
    assert more.tokens == expected[len(said) :]


def test_drafter_that_fails_to_learn_a_round_takes_the_round_back() -> None:
    class Forgetful(RandomDrafter):
        def extend(self, tokens: list[int], hidden: np.ndarray) -> None:
            if len(self.tokens) > len(PROMPT) + 5:
                raise ReadError("The file went away.")
            super().extend(tokens, hidden)

    language = Language(seed=3)
    drafter = Forgetful(language, right=1.0)
    decoder, target, logits = make(language, PROMPT, options(3), drafter)
    with pytest.raises(ReadError):
        list(decoder.run(logits))
    assert target.tokens == drafter.tokens == [*PROMPT, *decoder.tokens[:-1]]


def test_closing_the_iterator_leaves_a_committed_state() -> None:
    language = Language(seed=3)
    decoder, target, logits = make(language, PROMPT, options(3), RandomDrafter(language))
    rounds = decoder.run(logits)
    for _ in range(5):
        next(rounds)
    rounds.close()
    assert target.tokens == [*PROMPT, *decoder.tokens[:-1]]


def test_nan_after_the_prompt_fails_at_once() -> None:
    language = Language(seed=3)
    decoder, _, logits = make(language, PROMPT, options())
    logits[2] = np.nan
    with pytest.raises(NumericsError, match=f"position {len(PROMPT)}"):
        list(decoder.run(logits))
    assert (decoder.tokens, decoder.text, decoder.stop_reason) == ((), "", "failed")


def test_l12_same_inputs_same_outputs() -> None:
    language = Language(seed=3)
    sampled = options(4, temperature=1.0, top_k=8, seed=5)
    runs = [reply(language, PROMPT, sampled, make_drafter("mtp", language)) for _ in range(2)]
    assert runs[0].tokens == runs[1].tokens
    assert reply(
        language, PROMPT, options(4, temperature=1.0, top_k=8, seed=6), make_drafter("mtp", language)
    ).tokens != (runs[0].tokens)


@pytest.mark.parametrize("kind", ["mtp", "ngram", "mtp+ngram"])
def test_o29_sampled_replies_have_the_plain_distribution(kind: str) -> None:
    """Three tokens together, over thousands of seeds, penalties included, against the distribution on paper."""
    language = Language(5, seed=1, order=2, sharpness=1.5)
    settings_ = {"temperature": 1.0, "top_k": 4, "presence_penalty": 0.5}
    prompt = [1, 2, 3, 1, 2]
    expected = np.zeros((5, 5, 5))
    sampling = SamplingOptions(**settings_)  # type: ignore[arg-type]
    for a, b, c in np.ndindex(5, 5, 5):
        p = 1.0
        said: list[int] = []
        for token in (a, b, c):
            logits = language.logits(language.state([*prompt, *said][-4:]))
            p *= naive_sampling.distribution(logits, sampling, prompt, said)[token]
            said.append(token)
        expected[a, b, c] = p
    counts = np.zeros((5, 5, 5))
    for seed in range(2000):
        run = reply(language, prompt, options(2, 3, seed=seed, **settings_), make_drafter(kind, language))
        counts[run.tokens] += 1
    assert deviation(counts.ravel(), expected.ravel()) < 4


def test_disk_reads_are_booked_on_the_round_that_made_them() -> None:
    language, asked = Language(seed=3), itertools.count()

    def counters() -> WeightStatistics:
        n = next(asked)
        return WeightStatistics(
            bytes_read=100 * n,
            wait_s=0.25 * n,
            read_s=float(n),
            hits=3 * n,
            misses=2 * n,
            expert_hits=5 * n,
            ring_bytes=7,
        )

    run = reply(language, PROMPT, options(2, 10), RandomDrafter(language), reads=counters)
    once = DiskUse(read_s=1.0, hits=3, misses=2, expert_hits=5, memory_bytes=7)
    assert {(r.bytes_read, r.disk_wait_s, r.disk) for r in run.rounds[1:]} == {(100, 0.25, once)}
    stats = run.decoder.stats
    assert stats.bytes_read == 100 * stats.rounds
    assert (stats.disk.hits, stats.disk.misses, stats.disk.memory_bytes) == (3 * stats.rounds, 2 * stats.rounds, 7)
    assert stats.disk.overlap(stats.disk_wait_s) == 0.75
    assert record_from_json(json.loads(json.dumps(to_json(run.rounds[1])))) == run.rounds[1]


def test_times_come_from_the_given_clock() -> None:
    language, ticks = Language(seed=3), itertools.count()
    run = reply(language, PROMPT, options(2, 10), RandomDrafter(language), clock=lambda: float(next(ticks)))
    assert {(r.draft_s, r.verify_s) for r in run.rounds[1:]} == {(2.0, 2.0)}


def test_alternatives_are_given_when_asked_for() -> None:
    language = Language(seed=3)
    chosen = replace(options(3, 20), top_alternatives=3)
    run = reply(language, PROMPT, chosen, make_drafter("mtp", language))
    for record in run.rounds:
        for token in record.committed:
            assert len(token.alternatives) == 3
            assert token.alternatives[0].token == token.token
            assert token.alternatives[0].probability == token.model_probability
        for draft in record.drafts:
            assert draft.alternatives[0].token == draft.token
    assert run.rounds[1].committed[0].alternatives[1].text
