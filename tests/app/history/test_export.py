"""What leaves the program says the same as the window."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.chat.cells import Reply
from app.history.chats import Chats
from app.history.export import as_html, as_json, as_markdown
from app.history.export_dialog import write_export
from app.history.store import Store
from tests.app.history.conftest import say
from tests.app.scripted import WORDS


@pytest.fixture
def chats(qapp: QApplication, store: Store) -> Chats:
    conversation, _ = say(store)
    chats = Chats(store)
    chats.open(conversation)
    return chats


def test_markdown_has_who_said_what(chats: Chats) -> None:
    text = as_markdown(chats.title, chats.entries())
    assert text.startswith("# What is the capital of France?\n\n## You\n\nWhat is")
    assert f"## Model\n\n{' '.join(WORDS)}\n" in text


def test_json_has_source_verdict_and_both_probabilities_of_each_token(chats: Chats) -> None:
    data = json.loads(as_json(chats.title, chats.entries()))
    tokens = data["messages"][1]["tokens"]
    reply = next(entry for entry in chats.entries() if isinstance(entry, Reply))
    assert len(tokens) == len(reply)
    assert {token["verdict"] for token in tokens} == {None, "accepted", "rejected", "unused"}
    assert {token["source"] for token in tokens} == {"model", "mtp", "ngram"}
    accepted = next(token for token in tokens if token["verdict"] == "accepted")
    assert (accepted["model_probability"], accepted["draft_probability"]) == (0.9, 0.8)


def test_html_keeps_every_colour_and_escapes_the_text(chats: Chats) -> None:
    page = as_html("a <b> & c", chats.entries())
    assert "<title>a &lt;b&gt; &amp; c</title>" in page
    body = re.sub(r"<del.*?</del>", "", page.split('<div class="reply">')[1].split("</div>")[0])
    assert re.sub(r"<[^>]+>", "", body) == " ".join(WORDS)
    for name in ("mtp", "ngram", "correction", "bonus", "refused", "unused"):
        assert f'class="{name}"' in page
        assert f".{name}{{" in page


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.json", "a"])
def test_a_file_is_written_as_its_ending_says(chats: Chats, tmp_path: Path, name: str) -> None:
    assert write_export(tmp_path / name, chats) == ""
    assert (tmp_path / (name if "." in name else "a.md")).read_text("utf-8")


def test_a_place_that_cannot_be_written_to_is_told(chats: Chats, tmp_path: Path) -> None:
    assert "could not be written" in write_export(tmp_path / "missing" / "a.md", chats)
