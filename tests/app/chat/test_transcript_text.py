"""Text of all kinds: what no tokenizer of ours makes must not break the view either."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor

from app.chat.transcript_model import TranscriptModel
from app.theme import LIGHT
from engine import Round
from tests.app.chat import scripted_records as script
from tests.app.chat.conftest import Show


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "\t\tx",
        "مرحبا بالعالم and then שלום",
        "日本語のとても長い文章です。" * 30,
        "👩‍👩‍👧 🇩🇪 é",
        "x" * 5000,
        "\x00\x07",
    ],
    ids=["empty", "newlines", "tabs", "bidi", "cjk", "emoji", "long", "control"],
)
def test_any_text_is_laid_out_painted_hovered_and_selected(show: Show, text: str) -> None:
    model = TranscriptModel()
    model.add_user(text)
    model.begin_reply()
    model.add_records([Round(0, 0, "answer", (), (script.plain_token(text), script.plain_token(" end")), 0.0, 0.1)])
    view = show(model, LIGHT, (400, 400))
    view.viewport().repaint()
    for y in range(0, 400, 9):
        for x in range(0, 400, 31):
            view.cell_at(QPointF(x, y))
            view.place_at(QPointF(x, y))
    view.select_all()
    assert view.selected_text().endswith(text + " end")
    assert QColor(LIGHT.surface) == view.viewport().grab().toImage().pixelColor(1, 399)


def test_the_tokens_of_a_row_of_both_directions_do_not_overlap(show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    words = ["He", " said", " مرحبا", " بالعالم", "،", " then", " 12", " שלום", "!", " 👩🏽", "\u200d🚀"]
    model.add_records([Round(i, i, "answer", (), (script.plain_token(w),), 0.0, 0.1) for i, w in enumerate(words)])
    view = show(model)
    spans = sorted(span for span in view.document.spans(0, 0) if span[1] > span[0])
    for (_, right), (left, _) in pairwise(spans):
        assert right - 1 <= left <= right + 8, "no overlap, and no gap wider than a space"


def test_a_newline_sign_is_not_drawn_twice_in_a_shaped_row(show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records([Round(0, 0, "answer", (), (script.plain_token("é\n"),), 0.0, 0.1)])
    view = show(model)
    assert view._fonts.shaped_row(["é", "\n"], [False, False]).text() == "é "


def test_right_to_left_words_stand_right_to_left(show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    words = ["שלום", " עולם", " טוב"]
    model.add_records([Round(i, i, "answer", (), (script.plain_token(w),), 0.0, 0.1) for i, w in enumerate(words)])
    view = show(model)
    lefts = [view.rect_of(0, cell).left() for cell in range(3)]
    assert lefts == sorted(lefts, reverse=True)
    assert len(set(lefts)) == 3
