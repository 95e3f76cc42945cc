"""Long text is cut where it may be cut, and what is finished stays as it is."""

from __future__ import annotations

from app.chat.cells import Note, Reply, UserMessage
from app.reading.pieces import (
    MOST_CALL,
    MOST_CHARACTERS,
    PIECE_CHARACTERS,
    AnswerCutter,
    Cutter,
    ReplyPieces,
    fold_line,
    pieces_of,
)
from engine import CommittedToken, Round

PARAGRAPH = "word " * 100 + "\n\n"


def said(text: str, phase: str = "answer", seconds: float = 0.5) -> Round:
    return Round(0, 0, phase, (), (CommittedToken(1, text, "model", "model", phase=phase),), 0.0, seconds)  # type: ignore[arg-type]


def test_pieces_end_at_blank_lines_and_lose_nothing() -> None:
    cutter = Cutter()
    text = PARAGRAPH * 30
    cutter.add(text)
    assert "".join(cutter.pieces) == text
    assert len(cutter.pieces) > 3
    assert all(piece.endswith("\n\n") and len(piece) < PIECE_CHARACTERS + len(PARAGRAPH) for piece in cutter.pieces)


def test_text_that_grows_is_cut_like_text_that_is_there() -> None:
    text = PARAGRAPH * 8 + "```\n" + PARAGRAPH * 8 + "```\n\n" + PARAGRAPH * 8
    whole, grown = Cutter(), Cutter()
    whole.add(text)
    before: list[str] = []
    for start in range(0, len(text), 7):
        first = grown.add(text[start : start + 7])
        assert grown.pieces[:first] == before[:first]
        before = list(grown.pieces)
    assert grown.pieces == whole.pieces


def test_a_fence_is_not_cut_unless_it_is_huge() -> None:
    cutter = Cutter()
    cutter.add(PARAGRAPH + "```\n" + "a\n\n" * 2500 + "```\n\nafter\n")
    assert cutter.pieces[0].count("```") == 2
    huge = Cutter()
    huge.add("```\n" + "x" * (3 * MOST_CHARACTERS))
    assert max(map(len, huge.pieces)) <= MOST_CHARACTERS


def test_thinking_is_folded_with_its_duration() -> None:
    reply = Reply()
    reply.add_round(said("<think>\nhm", "think", 1.25))
    assert fold_line(reply, unfolded=False) == "▸ Thinking"
    reply.add_round(said("</think>\n\n", "think", 0.25))
    reply.add_round(said("Yes."))
    cut = ReplyPieces(reply)
    assert [(p.kind, p.text) for p in pieces_of(reply, 0, cut, False)] == [
        ("fold", "▸ Thought for 1.5 s"),
        ("answer", "Yes."),
    ]
    assert [p.kind for p in pieces_of(reply, 0, cut, True)] == ["fold", "thinking", "answer"]


def test_other_entries_are_one_piece() -> None:
    assert pieces_of(UserMessage("hello"), 3, None, False)[0].text == "hello"
    assert pieces_of(Note("Bad.", "error"), 4, None, False)[0].kind == "error"


CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
BROKEN = "<tool_call>\n{weather of Paris}\n</tool_call>"


def test_a_tool_call_is_a_piece_of_its_own_and_a_malformed_one_is_text() -> None:
    cutter = AnswerCutter()
    cutter.add(f"Let me look.\n{CALL}\nand\n{BROKEN} a < b")
    assert cutter.pieces == [
        ("answer", "Let me look.\n"),
        ("call", CALL),
        ("answer", f"\nand\n{BROKEN} a < b"),
    ]


def test_a_call_that_grows_is_text_until_it_is_whole_and_nothing_is_lost() -> None:
    text, whole, grown = f"a <b> <tool <tool_call{CALL}{CALL} end <tool_", AnswerCutter(), AnswerCutter()
    whole.add(text)
    for at, character in enumerate(text, 1):
        grown.add(character)
        assert "".join(piece for _, piece in grown.pieces) == text[:at]
    assert [kind for kind, _ in whole.pieces] == ["answer", "call", "call", "answer"]
    assert [piece for piece in grown.pieces if piece[0] == "call"] == [("call", CALL)] * 2


def test_a_call_without_an_end_does_not_hold_the_text_up_for_ever() -> None:
    cutter = AnswerCutter()
    cutter.add("<tool_call>" + PARAGRAPH * (MOST_CALL // len(PARAGRAPH) + 1))
    assert len(cutter.pieces) > 10
