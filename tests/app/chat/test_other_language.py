"""The chat in another language than English: nothing that people read is left behind, nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from gettext import NullTranslations

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QPlainTextEdit, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.chat.cells import plain_text
from app.chat.composer import Composer
from app.chat.legend import Legend
from app.chat.preset_bar import USUAL
from app.chat.sampling_panel import SamplingPanel
from app.chat.token_card import TokenCard, bytes_of, describe, facts_of
from app.chat.transcript_model import TranscriptModel
from app.chat.welcome import Welcome
from app.history.export import as_json
from app.history.export_pictures import PictureFolder
from app.language import Catalogue
from app.reading.documents import PieceDocument
from app.reading.pieces import Piece, fold_line
from app.settings import Preset, ReplyChoices
from app.theme import LIGHT
from engine import DraftOptions
from tests.app.chat.test_cells import PLAIN, REFUSED, reply_of

WITHOUT_WORDS = re.compile(r"[^A-Za-z]*")


class Quoted(NullTranslations):
    """A language that puts what English says in quotes."""

    def gettext(self, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"«{msgid1 if n == 1 else msgid2}»"


@pytest.fixture(autouse=True)
def quoted(qapp: QApplication) -> Iterator[None]:
    catalogue = Catalogue(Quoted(), qapp)
    qapp.installTranslator(catalogue)
    yield
    qapp.removeTranslator(catalogue)


def texts(root: QWidget) -> set[str]:
    """What a widget and those in it show, say as a tip and tell screen readers."""
    found: set[str] = set()
    for widget in (root, *root.findChildren(QWidget)):
        if widget.objectName().startswith("qt_"):
            continue
        found |= {widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()}
        if isinstance(widget, QLabel | QAbstractButton):
            found.add(widget.text())
        elif isinstance(widget, QComboBox):
            found |= {widget.itemText(at) for at in range(widget.count())}
        elif isinstance(widget, QSpinBox):
            found.add(widget.specialValueText())
        elif isinstance(widget, QPlainTextEdit):
            found.add(widget.placeholderText())
    return found


@pytest.mark.parametrize("kind", ["panel", "composer", "welcome", "legend"])
def test_no_text_is_left_in_english(qtbot: QtBot, kind: str) -> None:
    root = {"panel": lambda: SamplingPanel(ReplyChoices()), "composer": Composer, "welcome": Welcome, "legend": Legend}[
        kind
    ]()
    qtbot.addWidget(root)
    if isinstance(root, Welcome):
        root.offer_start("A model")
        root.offer_prompts("general")
    left = {text for text in texts(root) if "«" not in text and not WITHOUT_WORDS.fullmatch(text)}
    assert left == set()


def test_the_demo_is_asked_in_the_language_that_it_knows(qtbot: QtBot) -> None:
    welcome = Welcome()
    qtbot.addWidget(welcome)
    welcome.offer_prompts("demo")
    assert {"«A list: easy to guess ahead»", "Count from 1 to 20."} <= texts(welcome)


def test_everything_about_a_token_is_told(qtbot: QtBot) -> None:
    cell = reply_of(REFUSED).cell(1)
    area = QWidget()
    qtbot.addWidget(area)
    card = TokenCard(area, LIGHT)
    card.pinned = True
    card.show_cell(cell)
    assert "«draft that the model refused» · «pinned»" in texts(card)
    assert all("«" in label for label, _ in facts_of(cell))
    assert dict(facts_of(cell))["«Position»"] == "«11 (would have stood here)»"
    assert bytes_of(cell.text) not in describe(cell)


def test_the_ends_of_a_reply_and_its_thinking(qtbot: QtBot) -> None:
    reply = reply_of(PLAIN)
    model = TranscriptModel()
    model.show([reply])
    assert plain_text(model.entries).startswith("«Model:»\n")
    assert "«Thought" in fold_line(reply, False)
    document = PieceDocument(Piece("answer", "```\na\n```", 0), reply, QWidget().font(), LIGHT)
    assert "«Copy»" in document.toPlainText()


def test_files_keep_the_words_that_others_read() -> None:
    assert "«" not in as_json("A talk", [reply_of(REFUSED)], PictureFolder("pictures"))


def test_a_preset_may_have_the_english_name_of_a_usual_one(qtbot: QtBot) -> None:
    panel = SamplingPanel(ReplyChoices(draft=DraftOptions("mtp", 6)))
    qtbot.addWidget(panel)
    panel.presets.save(USUAL[0].name)
    assert panel.presets.list.currentText() == USUAL[0].name
    panel.presets.save(f"«{USUAL[0].name}»")
    with qtbot.waitSignal(panel.presets.saved) as blocker:
        panel.presets.delete()
    assert blocker.args == [()]


def test_a_usual_preset_cannot_be_deleted_through_its_name(qtbot: QtBot) -> None:
    mine = Preset(f"«{USUAL[0].name}»", ReplyChoices(draft=DraftOptions("mtp", 6)))
    panel = SamplingPanel(ReplyChoices(), (mine,))
    qtbot.addWidget(panel)
    assert panel.presets.list.currentText() == mine.name
    with qtbot.waitSignal(panel.presets.saved) as blocker:
        panel.presets.delete()
    assert blocker.args == [(mine,)]
