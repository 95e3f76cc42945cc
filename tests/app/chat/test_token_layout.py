"""Line breaking: every token placed exactly once, no row too wide, appending the same as laying out at once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.token_layout import Measure, TokenLayout, measured

EPSILON = 1e-6


def measure(text: str, small: bool) -> Measure:
    """Every character is 10 wide, in the small font 8; a token inside a character is 3 wide."""
    if not text:
        return Measure(3.0, 0.0, False, False, False, False)
    return measured(text, lambda part: len(part) * (8.0 if small else 10.0))


def lay_out(texts: list[str], width: float = 100, small: tuple[int, ...] = ()) -> TokenLayout:
    layout = TokenLayout(width, measure)
    layout.append((i, text, i in small) for i, text in enumerate(texts))
    return layout


def rows(layout: TokenLayout) -> list[str]:
    return ["".join(layout.text[piece] for piece in layout.row(row)) for row in range(layout.rows)]


ATOMS = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n",
    "a",
    " be",
    "cde",
    " fghij",
    "klmnopqrstuvwxyz",
    ",",
    ".\n",
    " -",
    "字",
    "。",
    "🦉",
    "\t",
    "x\ny",
]
TEXTS = st.lists(st.one_of(st.sampled_from(ATOMS), st.text(max_size=6)), max_size=60)
WIDTHS = st.floats(5, 400)


@settings(deadline=None)
@given(TEXTS, WIDTHS, st.sets(st.integers(0, 59)))
def test_every_character_of_every_token_is_placed_once_and_in_order(
    texts: list[str], width: float, small: set[int]
) -> None:
    layout = lay_out(texts, width, tuple(small))
    pieces: dict[int, str] = {}
    for piece in range(layout.pieces):
        token = layout.token[piece]
        assert layout.start(piece) == len(pieces.get(token, ""))
        pieces[token] = pieces.get(token, "") + layout.text[piece]
    assert pieces == dict(enumerate(texts))
    placed = [piece for row in range(layout.rows) for piece in layout.row(row)]
    assert placed == list(range(layout.pieces))


@settings(deadline=None)
@given(TEXTS, WIDTHS)
def test_no_row_is_wider_than_it_may_be(texts: list[str], width: float) -> None:
    layout = lay_out(texts, width)
    for row in range(layout.rows):
        assert layout.row_end(row) <= width + EPSILON
        for (_, right), (left, _) in pairwise(layout.spans(row)):
            assert right == left


@settings(deadline=None)
@given(TEXTS, WIDTHS)
def test_rows_begin_at_the_left_edge(texts: list[str], width: float) -> None:
    layout = lay_out(texts, width)
    for row in range(layout.rows):
        spans = layout.spans(row)
        if spans:
            left = spans[0][0]
            first = layout.text[layout.row(row)[0]]
            assert left <= EPSILON
            assert left == 0 or first[:1].isspace(), "only white space hangs before a row"


@settings(deadline=None)
@given(TEXTS, WIDTHS, st.lists(st.integers(1, 9), max_size=20))
def test_appending_is_the_same_as_laying_out_at_once(texts: list[str], width: float, cuts: list[int]) -> None:
    whole, grown = lay_out(texts, width), TokenLayout(width, measure)
    at, settled = 0, 0
    for count in [*cuts, len(texts)]:
        before = rows(grown)
        part = [(i, text, False) for i, text in enumerate(texts[at : at + count], at)]
        first = grown.append(part)
        assert rows(grown)[:first] == before[:first], "rows before the first changed one stay"
        assert first >= settled
        settled = first
        at += count
    assert rows(grown) == rows(whole)
    assert list(grown.x) == list(whole.x)
    assert [grown.row_end(r) for r in range(grown.rows)] == [whole.row_end(r) for r in range(whole.rows)]


def test_breaks_between_words_not_between_the_tokens_of_a_word() -> None:
    assert rows(lay_out(["One", " un", "break", "able", " word"], 120)) == ["One", " unbreakable", " word"]


def test_a_word_longer_than_a_row_breaks_where_it_must() -> None:
    assert rows(lay_out(["abcdefghijklmnopqrstuvwxyz"], 100)) == ["abcdefghij", "klmnopqrst", "uvwxyz"]
    assert rows(lay_out(["abcdef", "ghijkl"], 100)) == ["abcdef", "ghijkl"]


def test_white_space_at_a_break_takes_no_room() -> None:
    layout = lay_out(["abcdefghij", " klm"], 100)
    assert rows(layout) == ["abcdefghij", " klm"]
    assert layout.spans(1) == [(-10.0, 30.0)]
    hanging = lay_out(["abcdefghij", "   ", "klm"], 100)
    assert rows(hanging) == ["abcdefghij   ", "klm"]
    assert hanging.row_end(0) == 100


def test_white_space_after_a_newline_stays() -> None:
    layout = lay_out(["a", "\n", "    ", "b"], 100)
    assert layout.spans(1) == [(0.0, 40.0), (40.0, 50.0)]


def test_newlines_end_rows_and_blank_lines_are_rows() -> None:
    assert rows(lay_out(["a.\n\n", "b", "\n"])) == ["a.\n", "\n", "b\n"]


def test_punctuation_does_not_begin_a_row() -> None:
    assert rows(lay_out(["abcd", " efghi", ","], 100)) == ["abcd", " efghi,"]
    assert rows(lay_out(["字" * 9, "字", "。"], 100)) == ["字" * 9, "字。"]


def test_ideographs_break_anywhere() -> None:
    assert rows(lay_out(["字字", "字字", "字字"], 50)) == ["字字字字", "字字"]


def test_a_very_long_line_is_laid_out_row_by_row() -> None:
    calls = 0

    def counting(text: str, small: bool) -> Measure:
        nonlocal calls
        calls += len(text)
        return measure(text, small)

    layout = TokenLayout(100, counting)
    layout.append([(0, "x" * 50_000, False)])
    assert layout.rows == 5_000
    assert calls < 12 * 50_000, "measured a few times over, not once per row"


def test_finding_rows_and_pieces() -> None:
    layout = lay_out(["abc def\nghi", "jkl"], 100)
    assert [layout.row_of_piece(p) for p in range(layout.pieces)] == [0, 0, 1, 1]
    assert [layout.first_piece_of(token) for token in (0, 1, 2)] == [0, 3, 4]
