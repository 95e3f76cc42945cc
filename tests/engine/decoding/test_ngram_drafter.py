"""Prompt lookup over prompt and reply."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.drafters.ngram import NgramDrafter
from engine.options import DraftOptions, GenerateOptions
from tests.engine.decoding.running import plain, reply
from tests.engine.decoding.scripted import Language


def drafter(text: list[int], **keywords: object) -> NgramDrafter:
    made = NgramDrafter(**keywords)  # type: ignore[arg-type]
    made.extend(text)
    return made


def drafted(text: list[int], next_token: int, limit: int = 4, **keywords: object) -> list[int]:
    return list(drafter(text, **keywords).propose(next_token, limit).tokens)


def oracle(text: list[int], limit: int, max_ngram: int = 5) -> list[int]:
    """The longest suffix first, most recent occurrence first; beyond the end of the text the draft goes on itself."""
    for n in range(max_ngram, 1, -1):
        for start in range(len(text) - n - 1, -1, -1):
            if n < len(text) and text[start : start + n] == text[-n:]:
                longer = list(text)
                for i in range(limit):
                    longer.append(longer[start + n + i])
                return longer[len(text) :]
    return []


def test_l01_what_followed_is_the_draft() -> None:
    assert drafted([1, 2, 3, 4, 5, 6, 9, 1, 2], 3) == [4, 5, 6, 9]


def test_l01_the_longest_suffix_wins_over_a_more_recent_shorter_one() -> None:
    assert drafted([1, 2, 3, 50, 7, 2, 3, 60, 1, 2], 3, 1) == [50]


def test_the_most_recent_occurrence_wins() -> None:
    assert drafted([1, 2, 50, 1, 2, 60, 8, 1], 2, 1) == [60]


def test_l01_a_single_token_is_never_looked_up() -> None:
    assert drafted([1, 50, 2, 60, 3], 1) == []


def test_the_reply_is_searched_too() -> None:
    made = drafter([9, 9, 8])
    made.extend([1, 2, 3, 7, 1], np.zeros((5, 4), np.float32))
    assert list(made.propose(2, 2).tokens) == [3, 7]


def test_a_short_period_is_drafted_at_full_length() -> None:
    assert drafted([1, 2, 1, 2, 1], 2, 5) == [1, 2, 1, 2, 1]


def test_l07_drafting_stops_after_an_end_token() -> None:
    assert drafted([1, 2, 3, 99, 4, 1], 2, 4, end_tokens={99}) == [3, 99]


def test_a_proposal_leaves_no_trace() -> None:
    made = drafter([1, 2, 3, 1])
    assert list(made.propose(2, 2).tokens) == [3, 1]
    assert made.position == 4
    assert list(made.propose(5, 2).tokens) == []


def test_limit_0_and_no_match() -> None:
    made = drafter([1, 2, 3])
    assert made.propose(4, 0).note == ""
    draft = made.propose(4, 3)
    assert draft.tokens == ()
    assert "has not occurred before" in draft.note


def test_truncate_forgets() -> None:
    made = drafter([1, 2, 50, 1, 2, 60])
    made.truncate(3)
    made.extend([7, 1])
    assert list(made.propose(2, 1).tokens) == [50]
    made.truncate(0)
    made.extend([7, 1])
    assert list(made.propose(2, 1).tokens) == []


def test_drafts_are_certain() -> None:
    draft = drafter([1, 2, 3, 1]).propose(2, 2)
    assert draft.sources == ("ngram", "ngram")
    assert draft.distributions == (None, None)
    assert draft.passes == 0


@settings(deadline=None)  # the first run compiles
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 20))
def test_any_text_gives_what_the_oracle_gives(text: list[int], limit: int, cut: int) -> None:
    made = drafter([*text, 1, 2, 1])
    made.truncate(min(cut, made.position))
    kept = [*text, 1, 2, 1][:cut]
    made.extend(text)
    assert list(made.propose(text[0], limit).tokens) == oracle([*kept, *text, text[0]], limit)


def test_other_texts_are_searched_where_this_one_has_nothing() -> None:
    lookup = NgramDrafter()
    lookup.extend([1, 2, 3])
    assert lookup.look_up(4, 3) == ([], 0, 0)
    lookup.search_also([[9, 3, 4, 5, 6, 7], [8, 8]])
    assert lookup.look_up(4, 3) == ([5, 6, 7], 2, 3)
    assert lookup.look_up(4, 9) == ([5, 6, 7], 2, 3)  # never over the border to the next text
    assert lookup.position == 3


def test_the_text_itself_comes_first_and_later_texts_before_earlier_ones() -> None:
    lookup = NgramDrafter()
    lookup.search_also([[3, 4, 50], [3, 4, 60]])
    lookup.extend([3])
    assert lookup.look_up(4, 1)[0] == [60]
    lookup.extend([4, 7, 3])
    assert lookup.look_up(4, 1)[0] == [7]
    lookup.search_also([])
    lookup.truncate(1)
    assert lookup.look_up(4, 1)[0] == []


def test_nothing_follows_at_the_end_of_another_text() -> None:
    lookup = NgramDrafter()
    lookup.search_also([[1, 2], [5, 6]])
    lookup.extend([1])
    assert lookup.look_up(2, 4) == ([], 0, 0)


def test_drafts_from_other_texts_stop_after_an_end_token_and_change_nothing() -> None:
    lookup = NgramDrafter({5})
    lookup.search_also([[3, 4, 5, 6]])
    lookup.extend([3])
    assert lookup.look_up(4, 4)[0] == [5]
    language = Language(24, seed=3, order=2)
    known = plain(language, [1, 2, 3], GenerateOptions(max_new_tokens=40)).tokens
    helped = NgramDrafter()
    helped.search_also([[1, 2, 3, *known]])
    chosen = GenerateOptions(draft=DraftOptions("ngram", 6), max_new_tokens=40)
    done = reply(language, [1, 2, 3], chosen, helped)
    assert done.tokens == known
    assert done.decoder.stats.tokens_per_round > 3
