"""The window and its rooms in another language than English: nothing that people read is left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QTableView, QTableWidget, QTreeWidget, QWidget

from app.actions import ACTIONS
from app.help.palette import COMMAND
from app.help.update_check import check
from app.language import Catalogue
from app.library.choice import Choice, facts, open_choice
from app.library.entries import Entry, facts_table, headline
from app.runs.comparison import compare_runs
from app.runs.experiments import Proof, verdict
from app.status import Tally, drafting_text
from engine import DraftOptions, Report, SelfCheck
from tests.app.chat.test_other_language import Quoted, texts
from tests.app.conftest import MakeWindow
from tests.app.runs.test_comparison import AB, trace
from tests.app.scripted import model_info

NAMES = re.compile(
    r"[^A-Za-z]*|Draftscope.*|English|Close|Scroll \w+|Python [\d.]+, Qt .*|demo|[\d.]+ [KMG]iB"
    r"|(Ctrl|Alt|Shift)\+.*|F\d|Enter|Esc|.*/.*"
)
"""What is a name, a unit or a key, and Qt's own words, which come with Qt."""
INFO = model_info(Path("/models/demo"))
ROOMS = ("library", "download", "log", "about", "shortcuts", "preferences", "show_runs", "tour")


@pytest.fixture
def quoted(qapp: QApplication) -> Iterator[None]:
    catalogue = Catalogue(Quoted(), qapp)
    qapp.installTranslator(catalogue)
    yield
    qapp.removeTranslator(catalogue)


def in_english(found: set[str]) -> set[str]:
    return {text for text in found if "«" not in text and not NAMES.fullmatch(text)}


def headings(root: QWidget) -> set[str]:
    """What tables have above their columns."""
    found = set()
    for table in root.findChildren(QTableView):
        if not isinstance(table, QTableWidget):
            model = table.model()
            found |= {str(model.headerData(at, table.horizontalHeader().orientation())) for at in range(7)}
    for tree in root.findChildren(QTreeWidget):
        found |= {tree.headerItem().text(at) for at in range(tree.columnCount())}
    return found - {"None"}


def test_no_text_of_the_window_and_its_rooms_is_left_in_english(quoted: None, make_window: MakeWindow) -> None:
    window = make_window()
    for name in ROOMS:
        window.actions_by_name[name].trigger()
    found = texts(window) | headings(window)
    for action in window.findChildren(QAction):
        found |= {action.text(), action.toolTip()}
    assert {"«&Library…»", "«Library…» (Ctrl+L)", "«Which model answers»", "«Language»"} <= found
    assert in_english(found) == set()


def test_commands_are_found_by_their_translated_names(quoted: None, make_window: MakeWindow) -> None:
    window = make_window()
    window.actions_by_name["palette"].trigger()
    palette = window.rooms.palette
    assert palette is not None
    commands = [palette.list.item(at).data(COMMAND) for at in range(palette.list.count())]
    assert in_english({text for command in commands for text in (command.text, command.group)}) == set()
    assert len(commands) == len([spec for spec in ACTIONS if spec.name not in ("", "palette")])


def test_what_is_said_of_a_model(quoted: None, qapp: QApplication) -> None:
    assert in_english(set(facts(INFO).split(" · "))) == set()
    for problem in (open_choice(Choice(), None, lambda *_, **__: None), drafting_text(None, DraftOptions())[1]):
        assert "«" in problem
    assert drafting_text(INFO, DraftOptions("none"))[0] == "«off»"
    assert "«" in drafting_text(INFO, DraftOptions("ngram", 3))[1]
    assert Tally(prefill=(1, 20)).activity == "«Reading the prompt: 1 of 20 tokens»"
    report = Report(path="/m", name="m", kind="model")
    assert {name for name, _ in facts_table(Entry(report))} >= {"«Place»", "«MTP layer»", "«Tokenizer»"}
    assert "«no MTP»" in headline(Entry(report))


def test_what_is_said_of_runs(quoted: None, qapp: QApplication) -> None:
    compared = compare_runs(trace(AB), trace(AB, settings={"top k": 3}, machine={"cores": 4}))
    assert in_english({delta.name for delta in compared.deltas}) == set()
    assert {setting.name for setting in compared.settings} >= {"top k", "«Machine: cores»"}, "the file's own words stay"
    assert verdict(Proof(SelfCheck(3, 3, None), False)).count("«") == 2, "two sentences, each a text of its own"


def test_an_answer_about_versions(quoted: None, qapp: QApplication) -> None:
    assert "«127.0.0.1:1 could not be asked" in check("http://127.0.0.1:1/").sentence
