"""N-gram speculation for any model that can be called as a function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.closure import NgramSpeculator, generate_with_speculation, verify_draft
from engine.errors import NumericsError, OptionError
from tests.engine.decoding.scripted import Language


def one_hot(*tokens: int) -> np.ndarray:
    return np.eye(50, dtype=np.float32)[list(tokens)]


class Model:
    """Reads what it is given, where it is told to."""

    def __init__(self, language: Language) -> None:
        self.language, self.text, self.calls = language, [], 0

    def __call__(self, tokens: Sequence[int], position: int) -> np.ndarray:
        assert position <= len(self.text)
        assert tokens
        del self.text[position:]
        self.calls += 1
        rows = []
        for token in tokens:
            self.text.append(token)
            rows.append(self.language.logits(self.language.state(self.text[-4:])))
        return np.stack(rows)


def greedy(language: Language, prompt: list[int], count: int, eos: int | None) -> list[int]:
    text = list(prompt)
    while len(text) < len(prompt) + count:
        text.append(int(np.argmax(language.logits(language.state(text[-4:])))))
        if text[-1] == eos:
            break
    return text[len(prompt) :]


def test_l01_longest_suffix_first() -> None:
    assert NgramSpeculator([1, 2, 3, 10, 2, 3, 20]).speculate([1, 2, 3])[0] == 10
    assert NgramSpeculator([2, 3, 20, 1, 2, 3, 10]).speculate([1, 2, 3]) == [10]


def test_l01_first_occurrence() -> None:
    assert NgramSpeculator([2, 3, 20, 2, 3, 10]).speculate([2, 3])[0] == 20


def test_l01_never_a_single_token() -> None:
    assert NgramSpeculator([3, 20]).speculate([3]) == []
    assert NgramSpeculator([3, 20, 30]).speculate([9, 3]) == []


def test_l01_no_more_than_max_draft_and_max_ngram() -> None:
    assert NgramSpeculator([1, 2, 3, 4, 5, 6, 7], max_draft=3).speculate([1, 2]) == [3, 4, 5]
    prompt = [9, 2, 3, 20, 1, 2, 3, 10]
    assert NgramSpeculator(prompt, max_ngram=2).speculate([1, 2, 3])[0] == 20
    assert NgramSpeculator(prompt, max_ngram=3).speculate([1, 2, 3])[0] == 10


def test_l01_a_hit_at_the_very_end_falls_to_a_shorter_suffix() -> None:
    assert NgramSpeculator([2, 3, 20, 1, 2, 3]).speculate([1, 2, 3])[0] == 20
    assert NgramSpeculator([1, 2]).speculate([1, 2]) == []


def test_l01_the_prompt_alone_is_searched() -> None:
    assert NgramSpeculator([7, 8]).speculate([1, 2, 3, 1, 2]) == []


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"max_ngram": 1}, "max_ngram is 1, but it must be 2 or more"),
        ({"max_draft": 0}, "max_draft is 0, but it must be 1…14"),
        ({"max_draft": 15}, "max_draft is 15, but it must be 1…14"),
    ],
)
def test_l05_limits_are_refused_with_the_number(keywords: dict[str, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        NgramSpeculator([1], **keywords)


def test_l11_every_draft_is_verified_the_first_one_too() -> None:
    assert verify_draft([5, 6], one_hot(9, 6, 7)) == ([], 9)
    assert verify_draft([5, 6], one_hot(5, 9, 7)) == ([5], 9)


def test_l11_full_acceptance_keeps_the_bonus_token() -> None:
    assert verify_draft([5, 6], one_hot(5, 6, 7)) == ([5, 6], 7)
    assert verify_draft([], one_hot(7)) == ([], 7)


def test_verify_draft_refuses_too_few_rows_and_bad_numbers() -> None:
    with pytest.raises(OptionError, match="2 draft tokens need 3 rows of logits, but there are 2"):
        verify_draft([5, 6], one_hot(5, 6))
    with pytest.raises(NumericsError):
        verify_draft([5], one_hot(5, 6) * np.nan)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 50),
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.integers(0, 30),
    st.sampled_from([None, 2]),
    st.integers(2, 6),
    st.integers(1, 8),
)
def test_l11_tokens_are_those_of_greedy_decoding(
    seed: int, prompt: list[int], count: int, eos: int | None, max_ngram: int, max_draft: int
) -> None:
    language = Language(6, seed, order=1)
    model = Model(language)
    result = generate_with_speculation(prompt, count, eos, model, max_ngram=max_ngram, max_draft=max_draft)
    assert list(result.tokens) == greedy(language, prompt, count, eos)
    assert result.passes == model.calls
    assert result.accepted <= result.drafted


def test_l11_max_new_tokens_is_exact() -> None:
    prompt = [1, 2, 3, 4] * 5
    for count in range(12):
        cycle = lambda tokens, position: one_hot(*[t % 4 + 1 for t in tokens])  # noqa: E731
        assert len(generate_with_speculation(prompt, count, None, cycle).tokens) == count


def test_l11_an_end_token_inside_a_draft_stops_there() -> None:
    cycle = lambda tokens, position: one_hot(*[t % 4 + 1 for t in tokens])  # noqa: E731
    result = generate_with_speculation([1, 2, 3, 4] * 3, 20, 3, cycle)
    assert result.tokens == (1, 2, 3)
    assert result.passes == 2


def test_l10_fewer_passes_and_a_rate() -> None:
    cycle = lambda tokens, position: one_hot(*[t % 4 + 1 for t in tokens])  # noqa: E731
    result = generate_with_speculation([1, 2, 3, 4] * 3, 21, None, cycle)
    assert (result.passes, result.drafted, result.accepted, result.acceptance) == (5, 16, 16, 1.0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(OptionError, match="0 tokens"):
        generate_with_speculation([], 5, None, Model(Language()))
    with pytest.raises(OptionError, match="max_new_tokens is -1"):
        generate_with_speculation([1], -1, None, Model(Language()))
