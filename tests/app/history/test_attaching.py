"""Files for a message: what is taken, what is refused, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from app.history.attaching import Attaching, attachable, read_attachment
from app.history.store import Attachment
from engine import PictureSize


@pytest.fixture
def attaching(qapp: object) -> Attaching:
    return Attaching()


def test_pictures_and_text_are_taken_once(attaching: Attaching, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.PNG")
    (tmp_path / "n.py").write_text("x = 'é'\n", "utf-8")
    assert attaching.add_paths([tmp_path / "a.PNG", tmp_path / "n.py", tmp_path / "n.py"]) == ""
    assert [(file.kind, file.name) for file in attaching.files] == [("picture", "a.PNG"), ("text", "n.py")]
    assert attaching.pictures
    attaching.remove(attaching.files[0])
    assert not attaching.pictures
    assert [file.name for file in attaching.take()] == ["n.py"]
    assert attaching.files == ()


def test_what_cannot_be_attached_is_told_and_the_rest_is_taken(attaching: Attaching, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    (tmp_path / "blob.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "ok.txt").write_text("ok")
    assert "bad.png is no picture" in attaching.add_paths([tmp_path / "bad.png", tmp_path / "ok.txt"])
    assert "neither a picture nor text" in attaching.add_paths([tmp_path / "blob.bin"])
    assert "cannot be read" in attaching.add_paths([tmp_path / "missing.txt"])
    assert [file.name for file in attaching.files] == ["ok.txt"]


def test_models_and_folders_are_not_for_the_message(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    (tmp_path / "a.txt").write_text("a")
    assert [attachable(tmp_path / name) for name in ("m.gguf", "a.txt", "missing", ".")] == [False, True, False, False]


def test_what_a_file_takes_is_remembered_as_it_is_told(attaching: Attaching) -> None:
    file = Attachment("text", "a", b"a")
    attaching.set_files((file,))
    attaching.set_tokens(file, 12)
    assert attaching.tokens[file] == 12


def test_a_picture_keeps_the_size_that_was_chosen_for_it(attaching: Attaching) -> None:
    cat, dog = Attachment("picture", "cat.png", b"cat"), Attachment("picture", "dog.png", b"dog")
    whole, small = PictureSize(None, 900, 300, 30), PictureSize(256, 256, 86, 24)
    attaching.set_files((cat, dog))
    assert attaching.size_of(cat) is None
    attaching.set_sizes(cat, (whole, small))
    assert attaching.size_of(cat) is whole
    attaching.choose_size(cat, 256)
    assert [file.longest for file in attaching.files] == [256, 0]
    assert attaching.size_of(attaching.files[0]) is small
    attaching.forget_costs()
    assert attaching.size_of(attaching.files[0]) is None
    assert attaching.take()[0].longest == 256


def test_what_is_no_ordinary_file_is_not_waited_for(attaching: Attaching, tmp_path: Path) -> None:
    """A pipe that nobody writes to, a device that never ends, a folder."""
    odd = [tmp_path, Path(os.devnull)]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.png")
        odd += [tmp_path / "pipe.png", Path("/dev/zero")]
    for path in odd:
        problem = read_attachment(path)
        assert isinstance(problem, str)
        assert str(path) in problem
