"""What leaves the program says the same as the window."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.chat.cells import Reply
from app.history.chats import Chats
from app.history.export import as_html, as_json, as_markdown
from app.history.export_dialog import write_export
from app.history.export_pictures import INLINE_BYTES, INLINE_SIDE, PictureFolder, inline
from app.history.store import Attachment, Store
from app.main_window import MainWindow
from tests.app.conftest import PATIENCE_MS
from tests.app.history.conftest import say
from tests.app.scripted import WORDS


@pytest.fixture
def chats(qapp: QApplication, store: Store) -> Chats:
    conversation, _ = say(store)
    chats = Chats(store)
    chats.open(conversation)
    return chats


def test_markdown_has_who_said_what(chats: Chats) -> None:
    text = as_markdown(chats.title, chats.entries(), PictureFolder("files"))
    assert text.startswith("# What is the capital of France?\n\n## You\n\nWhat is")
    assert f"## Model\n\n{' '.join(WORDS)}\n" in text


def test_json_has_source_verdict_and_both_probabilities_of_each_token(chats: Chats) -> None:
    data = json.loads(as_json(chats.title, chats.entries(), PictureFolder("files")))
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


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 20), mode: str = "RGB") -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size, 120 if mode == "L" else (200, 100, 50, 128)[: len(mode)]).save(stream, kind)
    return stream.getvalue()


def named(name: str, data: bytes) -> str:
    """What a picture is called beside an exported text."""
    stem, dot, ending = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(data).hexdigest()[:12]}{dot}{ending}"


@pytest.fixture
def pictured(qapp: QApplication, store: Store) -> Chats:
    """A conversation with two pictures, one of them twice, and a text."""
    conversation = store.create()
    cat, dog = Attachment("picture", "my [cat].png", picture()), Attachment("picture", "dog.tif", picture("TIFF"))
    first = store.add_user(conversation, None, "look", (cat, Attachment("text", "n.txt", b"x"), dog))
    store.add_user(conversation, first.id, "again", (Attachment("picture", "other name.png", cat.data),))
    chats = Chats(store)
    chats.open(conversation)
    return chats


def test_markdown_has_pictures_in_a_folder_beside_it(pictured: Chats, tmp_path: Path) -> None:
    told: list[str] = []
    assert write_export(tmp_path / "my chat.md", pictured, tell=told.append) == ""
    assert ["the folder my chat.md_files beside it" in sentence for sentence in told] == [True]
    text = (tmp_path / "my chat.md").read_text("utf-8")
    cat = named("my-cat-.png", picture())
    assert f"![my \\[cat\\].png](my%20chat.md_files/{cat})" in text
    assert "*Attached: n.txt*" in text
    assert text.count(f"my%20chat.md_files/{cat}") == 2
    folder = tmp_path / "my chat.md_files"
    assert sorted(file.name for file in folder.iterdir()) == [named("dog.tif", picture("TIFF")), cat]
    assert (folder / cat).read_bytes() == picture()


@pytest.mark.parametrize(
    "name", ["x" * 251 + ".png", "\u8868" * 84 + ".png", "../../evil.png", "/etc/x.png", "..", "\0.png"]
)
def test_pictures_of_any_name_stand_in_the_folder(qapp: QApplication, store: Store, tmp_path: Path, name: str) -> None:
    conversation = store.create()
    store.add_user(conversation, None, "look", (Attachment("picture", name, picture()),))
    chats = Chats(store)
    chats.open(conversation)
    (tmp_path / "place").mkdir()
    assert write_export(tmp_path / "place" / "c.md", chats) == ""
    (file,) = (tmp_path / "place" / "c.md_files").iterdir()
    assert file.read_bytes() == picture()
    assert f"](c.md_files/{quote(file.name)})" in (tmp_path / "place" / "c.md").read_text("utf-8")


def test_json_says_where_a_picture_is_and_what_it_must_be(pictured: Chats, tmp_path: Path) -> None:
    assert write_export(tmp_path / "c.json", pictured) == ""
    files = json.loads((tmp_path / "c.json").read_text("utf-8"))["messages"][0]["files"]
    assert [file["kind"] for file in files] == ["picture", "text", "picture"]
    assert (tmp_path / files[2]["file"]).read_bytes() == picture("TIFF")
    assert len(files[2]["sha256"]) == 64
    assert "file" not in files[1]


def test_exports_side_by_side_leave_each_other_their_pictures(qapp: QApplication, store: Store, tmp_path: Path) -> None:
    """Two conversations and three files whose names differ in their ends alone, then one of them written again."""
    chats, said = Chats(store), {}
    for data in (picture(), picture(size=(7, 7))):
        conversation = store.create()
        store.add_user(conversation, None, "look", (Attachment("picture", "cat.png", data),))
        said[conversation] = data
    one, other = said
    for conversation, name in ((one, "a.md"), (other, "a.json"), (other, "a.b.md"), (one, "a.json"), (other, "a.md")):
        chats.open(conversation)
        assert write_export(tmp_path / name, chats) == ""
        cat = named("cat.png", said[conversation])
        assert f"{name}_files/{cat}" in (tmp_path / name).read_text("utf-8")
        assert (tmp_path / f"{name}_files" / cat).read_bytes() == said[conversation]
    assert {file.name: file.read_bytes() for file in (tmp_path / "a.md_files").iterdir()} == {
        named("cat.png", data): data for data in said.values()
    }


def test_a_page_holds_its_pictures_with_names_and_sizes(pictured: Chats, tmp_path: Path) -> None:
    assert write_export(tmp_path / "c.html", pictured) == ""
    assert [file.name for file in tmp_path.iterdir() if "files" in file.name] == []
    page = (tmp_path / "c.html").read_text("utf-8")
    tags = re.findall(r'<img src="data:(image/\w+);base64,([^"]+)" alt="([^"]+)" title="[^"]+" ([^>]+)>', page)
    assert [(kind, name, size) for kind, _, name, size in tags] == [
        ("image/png", "my [cat].png", 'width="40" height="20"'),
        ("image/jpeg", "dog.tif", 'width="40" height="20"'),  # no browser shows TIFF
        ("image/png", "other name.png", 'width="40" height="20"'),
    ]
    assert base64.b64decode(tags[0][1]) == picture()
    assert "[n.txt]" in page


def test_a_page_does_not_grow_without_bounds_and_a_broken_picture_is_named() -> None:
    noise = io.BytesIO()
    Image.effect_noise((2400, 1200), 90).convert("RGB").save(noise, "PNG")
    assert len(noise.getvalue()) > INLINE_BYTES
    large, clear = inline(noise.getvalue()), inline(picture("TIFF", (4000, 10), "RGBA"))
    assert large is not None
    assert clear is not None
    assert (large.width, large.height) == (INLINE_SIDE, INLINE_SIDE // 2)
    assert len(large.uri) < INLINE_BYTES
    assert clear.uri.startswith("data:image/png")
    assert clear.width == INLINE_SIDE
    assert inline(b"no picture") is None


def test_the_window_writes_where_the_person_says_and_tells_of_the_pictures(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        loaded.controller.send("look", (Attachment("picture", "cat.png", picture()),))
    place = tmp_path / "out" / "chat.md"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    loaded.actions_by_name["export_chat"].trigger()
    assert loaded.message_bar.level == "error"
    place.parent.mkdir()
    loaded.actions_by_name["export_chat"].trigger()
    assert loaded.message_bar.text.startswith("chat.md is written; its pictures are in the folder chat.md_files")
    assert (place.parent / "chat.md_files" / named("cat.png", picture())).read_bytes() == picture()
