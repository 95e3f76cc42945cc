"""Selecting: what is inside, whole words across tokens, text without ghosts."""

from __future__ import annotations

import pytest

from app.chat.blocks import Place
from app.chat.cells import Entry, Note, Reply, UserMessage
from app.chat.selection import Selection, word_at
from tests.app.chat import scripted_records as script
from tests.app.chat.test_cells import FULL, REFUSED, draft, one_round, reply_of, said


def selected(entries: list[Entry], anchor: tuple[int, int, int], head: tuple[int, int, int]) -> str:
    selection = Selection()
    selection.anchor, selection.head = Place(*anchor), Place(*head)
    return selection.text(entries)


def test_text_leaves_ghosts_out_and_parts_entries() -> None:
    entries: list[Entry] = [UserMessage("one two"), reply_of(REFUSED, FULL), Note("Stopped.")]
    assert selected(entries, (0, 0, 0), (3, 0, 0)) == "one two\n\n a x d e\n\nStopped."
    assert selected(entries, (0, 1, 1), (1, 0, 1)) == "two\n\n "
    assert selected(entries, (1, 3, 1), (1, 3, 2)) == "x"
    assert selected(entries, (1, 1, 0), (1, 3, 0)) == "", "only ghosts"


def test_direction_does_not_matter() -> None:
    entries: list[Entry] = [UserMessage("one two three")]
    assert selected(entries, (0, 2, 3), (0, 0, 1)) == selected(entries, (0, 0, 1), (0, 2, 3)) == "ne two th"


def test_select_all_is_the_whole_text() -> None:
    reply = Reply()
    for record in script.rounds(script.ANSWER):
        reply.add_round(record)
    selection = Selection()
    selection.select_all([reply])
    assert selection.text([reply]) == script.ANSWER
    selection.clear()
    assert selection.text([reply]) == ""


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((0, 0, 0), "unbreakable"),
        ((0, 2, 3), "unbreakable"),
        ((0, 3, 0), " "),
        ((0, 3, 2), "word"),
        ((0, 4, 0), "."),
        ((0, 4, 1), "."),
    ],
)
def test_a_word_goes_across_tokens_and_ghosts(at: tuple[int, int, int], expected: str) -> None:
    refused = one_round(
        [draft("un", "accepted"), draft("zip", "rejected")], [said("un", "accepted"), said("break", "correction")]
    )
    rest = (
        one_round([], [said("able", "model")]),
        one_round([], [said(" word", "model")]),
        one_round([], [said(".", "model")]),
    )
    reply = reply_of(refused, *rest)
    place = Place(*at)
    if place.cell >= 1:  # the ghost is cell 1
        place = place._replace(cell=place.cell + 1)
    first, last = word_at(reply, place)
    assert selected([reply], first, last) == expected


def test_inside_counts_characters_of_a_stretch() -> None:
    selection = Selection()
    selection.anchor, selection.head = Place(0, 1, 2), Place(0, 3, 1)
    before, after = selection.inside(Place(0, 0, 0), 5), selection.inside(Place(0, 3, 2), 5)
    assert before[0] >= before[1]
    assert after[0] >= after[1]
    assert selection.inside(Place(0, 1, 0), 5) == (2, 5)
    assert selection.inside(Place(0, 2, 0), 5) == (0, 5)
    assert selection.inside(Place(0, 3, 0), 5) == (0, 1)
