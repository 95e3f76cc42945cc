"""The token card: words and numbers, never the letters p and q."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.chat.cells import Reply
from app.chat.token_card import TokenCard, bytes_of, describe, facts_of, percent, visible_text
from app.theme import DARK, LIGHT
from engine import Round
from tests.app.chat import scripted_records as script
from tests.app.chat.test_cells import FULL, PLAIN, REFUSED, reply_of


def facts(cell: int, *rounds: object) -> dict[str, str]:
    return dict(facts_of(reply_of(*rounds).cell(cell)))  # type: ignore[arg-type]


def test_an_accepted_draft() -> None:
    known = facts(0, REFUSED)
    assert known["Round"] == "1, draft 1 of 3"
    assert known["Source"].startswith("n-gram")
    assert (known["Model"], known["Draft"], known["Random draw"]) == ("25.0 %", "50.0 %", "0.7500")


def test_a_refused_draft_says_what_came_instead() -> None:
    known = facts(1, REFUSED)
    assert known["Position"] == "11 (would have stood here)"
    assert known["Round"] == "1, draft 2 of 3"


def test_a_correction_says_what_it_replaced() -> None:
    known = facts(3, REFUSED)
    assert known["Instead of"] == "“␣b” (6)"
    assert known["Round"] == "1, after 1 of 3 drafts"
    assert "Draft" not in known


def test_an_untested_draft_has_no_model_probability() -> None:
    assert facts(2, REFUSED)["Model"] == "–"


def test_plain_and_bonus_tokens() -> None:
    assert facts(0, PLAIN)["Round"] == "1, without drafts"
    assert facts(1, FULL)["Round"] == "1, after 1 of 1 drafts"


def test_the_prompts_own_token_belongs_to_no_round() -> None:
    first = Round(0, 4, "answer", (), (script.plain_token("Once"),), 0.0, 0.0)
    known = facts(0, first)
    assert known["Round"] == "none: it came with the prompt"
    assert "Round took" not in known


def test_the_letters_of_the_papers_are_not_used() -> None:
    reply = Reply()
    for record in script.rounds(script.ANSWER):
        reply.add_round(record)
    for cell in reply.cells():
        for label, _ in facts_of(cell):
            assert not re.search(r"\b[pq]\b", label)
        assert describe(cell)


@pytest.mark.parametrize(
    ("text", "seen"), [(" a", "␣a"), ("\n\t", "↵⇥"), ("", "(part of a character)"), ("\x07", "␇"), ("字", "字")]
)
def test_white_space_is_made_visible(text: str, seen: str) -> None:
    assert visible_text(text) == seen


def test_bytes_and_percents() -> None:
    assert bytes_of("é") == "c3 a9"
    assert bytes_of("x" * 20).endswith("…")
    assert bytes_of("") == "–"
    assert (percent(None), percent(1.0), percent(0.0), percent(2e-5)) == ("–", "100.0 %", "0.0 %", "2.0e-05")


def test_the_card_shows_both_lists_of_alternatives(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    card = TokenCard(parent, LIGHT)
    reply = Reply()
    for record in script.rounds(script.ANSWER):
        reply.add_round(record)
    cell = next(c for c in reply.cells() if c.draft_alternatives and c.model_alternatives)
    card.show_cell(cell)
    words = [label.text() for label in card.findChildren(QLabel)]
    assert "Model's choices" in words
    assert "Draft's choices" in words
    assert card.accessibleDescription() == describe(cell)
    card.apply_theme(DARK)
    assert DARK.text in card.styleSheet()


def test_the_card_stays_inside_and_off_the_token(qtbot: QtBot) -> None:
    parent = QWidget()
    parent.resize(600, 500)
    qtbot.addWidget(parent)
    card = TokenCard(parent, LIGHT)
    card.show_cell(reply_of(REFUSED).cell(0))
    area = parent.rect()
    for anchor in (QRect(10, 10, 40, 18), QRect(560, 470, 30, 18), QRect(300, 450, 30, 18)):
        card.place_beside(anchor, area)
        assert area.contains(card.geometry())
        assert not card.geometry().intersects(anchor)
