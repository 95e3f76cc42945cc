"""Blocks and their places: laid out on demand, growing the same as rebuilt, positions that agree with each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.blocks import BLOCK_CELLS, Geometry, Style
from app.chat.cells import Entry, Note, Reply, UserMessage
from app.chat.document import Document
from app.chat.token_cursor import Direction, move
from engine import CommittedToken, Round
from tests.app.chat import scripted_records as script
from tests.app.chat.test_token_layout import measure

GEOMETRY = Geometry(left=20, column=600, line=20, small_line=16, label=18, average=8, gap=24, pad=12)


def reply_of(rounds: list[Round]) -> Reply:
    reply = Reply()
    for record in rounds:
        reply.add_round(record)
    return reply


def document_of(*entries: Entry) -> Document:
    document = Document(measure, GEOMETRY)
    document.sync(entries, 0)
    return document


def laid_out(*entries: Entry) -> Document:
    document = document_of(*entries)
    document.lay_out(range(len(document.blocks)))
    return document


def look(document: Document) -> list[tuple[Style, int, int, str, float, float]]:
    return [
        (b.style, b.first, b.last, b.label, top, b.height)
        for b, top in zip(document.blocks, document.tops, strict=True)
    ]


def test_styles_follow_speakers_phases_and_tones() -> None:
    thinking = list(script.rounds("Let me see.\n", phase="think"))
    entries = [UserMessage("Hi"), reply_of([*thinking, *script.rounds("Yes.")]), Note("Stopped."), Note("No.", "error")]
    entries.insert(2, Note("Tool call: weather", "call"))
    document = document_of(*entries)
    assert [b.style for b in document.blocks] == [
        Style.USER,
        Style.THINKING,
        Style.ANSWER,
        Style.CALL,
        Style.NOTE,
        Style.ERROR,
    ]
    assert [b.label for b in document.blocks] == ["", "Thinking", "", "", "", ""]
    assert [b.card for b in document.blocks] == [True, False, False, True, False, True]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 30), max_size=12), st.booleans(), st.booleans())
def test_growing_is_the_same_as_building_at_once(batches: list[int], laid: bool, refused: bool) -> None:
    rounds = [*script.rounds(script.THINKING, phase="think"), *script.rounds(script.ANSWER)]
    reply, grown = Reply(), Document(measure, GEOMETRY)
    grown.show_refused = refused
    at = 0
    for count in [*batches, len(rounds)]:
        for record in rounds[at : at + count]:
            reply.add_round(record)
        at += count
        grown.sync([UserMessage("q") if not grown.entries else grown.entries[0], reply], 0)
        if laid:
            grown.lay_out(range(len(grown.blocks)))
    grown.lay_out(range(len(grown.blocks)))
    whole = Document(measure, GEOMETRY)
    whole.show_refused = refused
    whole.sync(grown.entries, 0)
    whole.lay_out(range(len(whole.blocks)))
    assert look(grown) == look(whole)
    assert grown.waiting == whole.waiting == 0


def test_sync_tells_from_where_on_things_changed() -> None:
    rounds = list(script.rounds(script.ANSWER))
    reply = reply_of(rounds[:20])
    document = laid_out(UserMessage("q"), reply)
    last_row = document.row_top(1, document.blocks[1].layout.rows - 1)  # type: ignore[union-attr]
    reply.add_round(rounds[20])
    assert document.sync(document.entries, 1) == last_row


def test_a_passing_note_goes_without_a_trace() -> None:
    reply = Reply()
    document = laid_out(UserMessage("q"), reply, Note("Reading the prompt: 1 of 2 tokens", passing=True))
    for record in script.rounds("Here it is."):
        reply.add_round(record)
    document.sync([document.entries[0], reply], 1)
    assert [b.style for b in document.blocks] == [Style.USER, Style.ANSWER]
    document.lay_out([0, 1])
    assert document.waiting == 0


def test_long_replies_are_cut_at_newlines_and_endless_lines_anywhere() -> None:
    for newline_every, longest in ((40, BLOCK_CELLS + 200), (0, 2 * BLOCK_CELLS)):
        reply = reply_of(script.long_reply(6000, newline_every=newline_every))
        document = document_of(reply)
        sizes = [b.last - b.first for b in document.blocks]
        assert sum(sizes) == len(reply)
        assert max(sizes) <= longest
        assert min(sizes[:-1]) >= BLOCK_CELLS
        ends = [reply.texts[b.last - 1].endswith("\n") for b in document.blocks[:-1]]
        assert all(ends) is bool(newline_every)


def test_nothing_is_laid_out_until_asked_and_then_only_that() -> None:
    document = document_of(reply_of(script.long_reply(20_000)))
    assert document.rows_laid == 0
    assert document.waiting == len(document.blocks)
    document.lay_out([3])
    assert [b.layout is not None for b in document.blocks].count(True) == 1
    assert document.waiting == len(document.blocks) - 1
    assert document.unlaid(3, 1) in ([2], [4])
    assert set(document.unlaid(3, 3 * BLOCK_CELLS)) == {2, 4}


def test_estimates_are_near_the_truth() -> None:
    reply = reply_of(script.long_reply(20_000))
    guessed, true = document_of(reply), laid_out(reply)
    assert true.height / 2 < guessed.height < 2 * true.height


def test_hit_testing_finds_every_piece_where_it_stands() -> None:
    document = laid_out(UserMessage("a question"), reply_of(list(script.rounds(script.ANSWER))))
    found = 0
    for index, block in enumerate(document.blocks):
        assert block.layout is not None
        for row in range(block.layout.rows):
            y = document.row_top(index, row) + 1
            for piece, (left, right) in zip(block.layout.row(row), document.spans(index, row), strict=True):
                if right - left > 1:
                    hit = document.hit(document.text_left(block) + (left + right) / 2, y)
                    assert hit == (index, row, piece)
                    found += 1
    assert found > 200
    assert document.hit(0, document.row_top(1, 0)) is None
    assert document.hit(30, -5) is None
    assert document.hit(30, document.height + 5) is None


def test_pieces_of_a_cell_are_where_hits_say() -> None:
    document = laid_out(UserMessage("q"), reply_of(list(script.rounds(script.ANSWER))))
    for cell in range(len(document.entries[1])):
        for index, row, piece in document.pieces_of(1, cell):
            layout = document.blocks[index].layout
            assert layout is not None
            assert layout.token[piece] == cell
            assert piece in layout.row(row)


def test_ghosts_are_left_out_where_not_wanted() -> None:
    reply = reply_of(list(script.rounds(script.ANSWER)))
    document = document_of(reply)
    document.show_refused = False
    document.lay_out([0])
    layout = document.blocks[0].layout
    assert layout is not None
    assert not any(reply.ghost(cell) for cell in layout.token)
    assert "".join(layout.text) == reply.text


def test_a_user_card_shrinks_to_its_text_at_the_right() -> None:
    document = laid_out(UserMessage("Hello"))
    block = document.blocks[0]
    assert block.content == 50
    assert document.text_left(block) + block.content + GEOMETRY.pad == GEOMETRY.left + GEOMETRY.column


@pytest.mark.parametrize("y", [-10, 0, 30, 1e9])
def test_block_at_any_height_is_a_block(y: float) -> None:
    document = laid_out(UserMessage("a"), UserMessage("b"))
    assert 0 <= document.block_at(y) < 2
    assert Document(measure, GEOMETRY).block_at(y) == -1


def test_incomplete_characters_have_a_place_of_their_own() -> None:
    tokens = [CommittedToken(1, "", "model", "model"), CommittedToken(2, "🦉", "model", "model")]
    document = laid_out(reply_of([Round(0, 0, "answer", (), (token,), 0.0, 0.1) for token in tokens]))
    assert document.spans(0, 0) == [(0.0, 3.0), (3.0, 13.0)]


def test_folded_thinking_leaves_only_its_label() -> None:
    thinking = list(script.rounds("Let me see.\n" * 30, phase="think"))
    reply = reply_of([*thinking, *script.rounds("Yes.")])
    document = laid_out(UserMessage("Hi"), reply, Note("Stopped."))
    open_height = document.height
    document.fold(1, True)
    label = next(i for i, b in enumerate(document.blocks) if b.label)
    assert document.height < open_height - 200
    assert document.text_top(label) == document.text_bottom(label)
    assert document.waiting == 0
    assert not document.lay_out(range(len(document.blocks)))
    cell = move(document, (1, reply.phase_end(0)), Direction.BACK)
    assert cell is None, "the cursor does not go into what is folded"
    document.fold(1, False)
    document.lay_out(range(len(document.blocks)))
    assert document.height == open_height
