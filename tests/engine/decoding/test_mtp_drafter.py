"""The MTP drafter pairs h_i with x_{i+1}, always, and cleans up after itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.sampler import Sampler
from engine.errors import Cancelled, ReadError
from engine.options import SamplingOptions
from tests.engine.decoding.scripted import Language, ScriptedMtp, to_hidden

LANGUAGE = Language(seed=5)
GREEDY = Sampler(SamplingOptions())


def states(text: list[int]) -> np.ndarray:
    return np.stack([to_hidden(LANGUAGE.state(text[max(0, i - 3) : i + 1])) for i in range(len(text))])


def true_pairs(text: list[int]) -> list[tuple[int, int]]:
    """(state after x_i, x_{i+1}) of every token that has a successor."""
    return [(LANGUAGE.state(text[max(0, i - 3) : i + 1]), text[i + 1]) for i in range(len(text) - 1)]


def continuation(text: list[int], count: int) -> list[int]:
    text = list(text)
    for _ in range(count):
        text.append(int(np.argmax(LANGUAGE.logits(LANGUAGE.state(text[-4:])))))
    return text[len(text) - count :]


class Fed:
    """A drafter and the text that it has seen."""

    def __init__(self, text: list[int], chunk: int = 400, **keywords: object) -> None:
        self.mtp = ScriptedMtp(LANGUAGE, **keywords)  # type: ignore[arg-type]
        self.drafter = MtpDrafter(self.mtp, end_tokens={23})
        self.text: list[int] = []
        for start in range(0, len(text), chunk):
            self.read(text[start : start + chunk])

    def read(self, tokens: list[int]) -> None:
        self.text += tokens
        self.drafter.extend(tokens, states(self.text)[-len(tokens) :])

    def propose(self, next_token: int, limit: int = 3) -> list[int]:
        return list(self.drafter.propose(next_token, limit, GREEDY).tokens)


TEXT = [1, 5, 2, 7, 9, 3, 3, 8]


def test_o23_a_pair_is_the_state_and_the_token_after_it() -> None:
    fed = Fed(TEXT)
    assert fed.propose(4) == continuation([*TEXT, 4], 3)
    assert fed.mtp.entries == true_pairs([*TEXT, 4])


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_o24_pending_rows_are_carried_from_chunk_to_chunk(chunk: int) -> None:
    text = [i % 20 for i in range(40)]
    fed = Fed(text, chunk)
    assert fed.propose(4) == continuation([*text, 4], 3)
    assert fed.mtp.entries == true_pairs([*text, 4])


def test_a_long_prompt_is_run_as_it_comes() -> None:
    fed = Fed([i % 20 for i in range(500)])
    assert fed.mtp.passes == 2
    assert fed.mtp.position == 499


def test_o25_entries_from_draft_states_are_dropped_and_true_ones_made() -> None:
    fed = Fed(TEXT)
    draft = fed.propose(4, 5)
    assert fed.mtp.position == len(TEXT)
    fed.read([4, *draft[:2]])  # two of them were accepted
    assert fed.propose(6, 2) == continuation([*TEXT, 4, *draft[:2], 6], 2)
    assert fed.mtp.entries == true_pairs([*TEXT, 4, *draft[:2], 6])


def test_o25_the_catch_up_pass_gives_the_first_draft() -> None:
    fed = Fed(TEXT)
    draft = fed.propose(4, 3)
    fed.read([4, *draft])
    before = fed.mtp.passes
    fed.propose(6, 3)
    assert fed.mtp.passes - before == 3


def test_passes_are_counted() -> None:
    assert Fed(TEXT).drafter.propose(4, 5, GREEDY).passes == 5


def test_l05_limit_0_does_nothing() -> None:
    fed = Fed(TEXT)
    assert fed.propose(4, 0) == []
    assert fed.mtp.passes == 0


def test_l07_drafting_stops_after_an_end_token() -> None:
    fed = Fed(TEXT)
    expected = continuation([*TEXT, 4], 6)
    fed.drafter = MtpDrafter(fed.mtp, end_tokens={expected[2]})
    fed.mtp.entries.clear()
    fed.text = []
    fed.read(TEXT)
    assert fed.propose(4, 6) == expected[:3]


def test_a_second_proposal_for_another_token_is_not_misled_by_the_first() -> None:
    """A reply ended, or a round failed: the token that was proposed for never came."""
    fed = Fed(TEXT)
    fed.propose(4)
    assert fed.propose(11) == continuation([*TEXT, 11], 3)
    fed.read([12, 13])
    assert fed.propose(14) == continuation([*TEXT, 12, 13, 14], 3)
    assert fed.mtp.entries == true_pairs([*TEXT, 12, 13, 14])


def test_plain_rounds_in_between_lose_nothing() -> None:
    fed = Fed(TEXT)
    for token in range(20):
        fed.read([token])
    assert fed.propose(4) == continuation([*TEXT, *range(20), 4], 3)
    assert fed.mtp.entries == true_pairs([*TEXT, *range(20), 4])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_o24_any_history_leaves_the_true_pairs(data: st.DataObject) -> None:
    """Extend, propose, truncate in any order: the cache holds true pairs and the proposal is right."""
    fed = Fed(TEXT)
    tokens = st.integers(0, 22)
    for _ in range(data.draw(st.integers(1, 8))):
        action = data.draw(st.sampled_from(["extend", "propose", "accept", "truncate"]))
        if action == "extend":
            fed.read(data.draw(st.lists(tokens, min_size=1, max_size=20)))
        elif action == "propose":
            fed.propose(data.draw(tokens), data.draw(st.integers(0, 4)))
        elif action == "accept":
            token = data.draw(tokens)
            draft = fed.propose(token, 4)
            fed.read([token, *draft[: data.draw(st.integers(0, len(draft)))]])
        else:
            length = data.draw(st.integers(1, len(fed.text)))
            fed.drafter.truncate(length, states(fed.text)[length - 1])
            del fed.text[length:]
            assert fed.drafter.position == length
    token = data.draw(tokens)
    assert fed.propose(token) == _until_end(continuation([*fed.text, token], 3))
    assert fed.mtp.entries == true_pairs([*fed.text, token])


def _until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(23) + 1] if 23 in tokens else tokens


def test_truncating_without_the_state_costs_one_row_only() -> None:
    fed = Fed([i % 20 for i in range(60)])
    fed.drafter.truncate(30)
    del fed.text[30:]
    fed.read([7, 8, 9])
    fed.propose(4)
    wrong = [i for i, (a, b) in enumerate(zip(fed.mtp.entries, true_pairs([*fed.text, 4]), strict=True)) if a != b]
    assert wrong == [29]


def test_truncating_to_the_start_begins_anew() -> None:
    fed = Fed(TEXT)
    fed.drafter.truncate(0)
    fed.text = []
    fed.read([3, 4])
    assert fed.propose(5) == continuation([3, 4, 5], 3)
    assert fed.mtp.entries == true_pairs([3, 4, 5])


def test_an_error_while_drafting_leaves_no_trace() -> None:
    for nth in (1, 2, 3):
        fed = Fed(TEXT)
        fed.mtp.fail_at[fed.mtp.passes + nth] = ReadError("The file went away.")
        with pytest.raises(ReadError):
            fed.propose(4, 5)
        assert fed.propose(4, 3) == continuation([*TEXT, 4], 3)
        assert fed.mtp.entries == true_pairs([*TEXT, 4])


def test_numbers_that_are_not_finite_end_the_draft_with_a_note() -> None:
    fed = Fed(TEXT)
    fed.mtp.poison = True
    draft = fed.drafter.propose(4, 3, GREEDY)
    assert draft.tokens == ()
    assert "not finite" in draft.note
    fed.mtp.poison = False
    assert fed.propose(4) == continuation([*TEXT, 4], 3)


def test_own_copies_of_hidden_states() -> None:
    """The caller's buffer is used again; a slice of it must not be relied on."""
    fed = Fed(TEXT)
    rows = states([*TEXT, 4])[-1:]
    fed.drafter.extend([4], rows)
    rows[:] = 0
    assert fed.propose(5) == continuation([*TEXT, 4, 5], 3)


def test_o18_a_trimmed_head_drafts_token_ids() -> None:
    expected = continuation([*TEXT, 4], 1)[0]
    ids = np.array([21, expected, 2, 17])  # the file's order need not be ascending
    fed = Fed(TEXT, draft_ids=ids)
    assert fed.propose(4, 1) == [expected]
    draft = fed.drafter.propose(4, 1, Sampler(SamplingOptions(1.0)))
    assert draft.distributions[0] is not None
    assert draft.distributions[0].ids.tolist() == sorted(ids.tolist())
    full = LANGUAGE.logits(LANGUAGE.step(LANGUAGE.state(TEXT), 4))[sorted(ids.tolist())]
    assert draft.distributions[0].probabilities == pytest.approx(np.exp(full) / np.exp(full).sum(), rel=1e-5)


def test_o22_bytes_of_a_step() -> None:
    assert Fed(TEXT).drafter.draft_step_bytes == 4096


def test_o13_a_clone_goes_its_own_way() -> None:
    fed = Fed(TEXT)
    fed.propose(4)
    copy = ScriptedMtp(LANGUAGE)
    copy.entries = list(fed.mtp.entries)
    other = fed.drafter.clone(copy)
    fed.read([4, 4, 4])
    assert list(other.propose(6, 3, GREEDY).tokens) == continuation([*TEXT, 6], 3)
    assert fed.propose(9) == continuation([*TEXT, 4, 4, 4, 9], 3)


def test_every_draft_has_its_probability_and_alternatives() -> None:
    draft = Fed(TEXT).drafter.propose(4, 3, Sampler(SamplingOptions(), alternatives=2))
    assert all(p == a[0][1] for p, a in zip(draft.probabilities, draft.alternatives, strict=True))
    assert draft.distributions == (None, None, None)


def test_a_stop_is_noticed_between_draft_steps() -> None:
    """A step of a streamed model may take a while: fourteen of them must not be waited for."""
    cancel = CancelToken()

    class Pressed(ScriptedMtp):
        def forward(self, hidden: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
            if self.passes == 2:
                cancel.cancel()
            return super().forward(hidden, tokens)

    mtp = Pressed(LANGUAGE)
    drafter = MtpDrafter(mtp)
    drafter.extend(TEXT, states(TEXT))
    with pytest.raises(Cancelled):
        drafter.propose(4, 14, GREEDY, cancel)
    assert mtp.passes == 3
    assert list(drafter.propose(4, 3, GREEDY).tokens) == continuation([*TEXT, 4], 3)
    assert mtp.entries == true_pairs([*TEXT, 4])
