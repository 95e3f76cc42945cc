"""`logits --image` with files that are no picture, damaged, or odd: one sentence and exit code 2, or it works."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.engine.cli.conftest import Run

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 90, 3), dtype=np.uint8))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def png(width: int, height: int, depth: int, colour: int, rows: bytes, more: bytes = b"") -> bytes:
    """A PNG file that announces what it likes; `rows` are its bytes before compression."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def half(kind: str) -> bytes:
    whole = encoded(NOISE, kind)
    return whole[: len(whole) // 2]


DAMAGED = r"cannot be read as a picture: "
BAD = {
    **{f"half.{kind.lower()}": (half(kind), DAMAGED) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")},
    "header.png": (encoded(NOISE, "PNG")[:20], DAMAGED),
    "header.jpg": (encoded(NOISE, "JPEG")[:10], DAMAGED),
    "empty.png": (b"", r"empty\.png is empty\.$"),
    "text.png": (b"hello", DAMAGED),
    "drawing.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", DAMAGED),
    "no-size.png": (png(0, 0, 8, 2, b""), DAMAGED),
    "wide.png": (encoded(Image.new("RGB", (65_000, 1)), "PNG"), "65000 × 1 pixels is too narrow"),
    "tall.png": (encoded(Image.new("RGB", (1, 201)), "PNG"), "1 × 201 pixels is too narrow"),
    "bomb.png": (png(60_000, 60_000, 8, 2, bytes(1000)), r"bomb\.png has more than 178 million pixels"),
    "bomb.bmp": (
        encoded(NOISE, "BMP")[:18] + struct.pack("<ii", 2**30, 2**30) + encoded(NOISE, "BMP")[26:],
        "has more than 178 million pixels",
    ),
    "bomb-in-a-comment.png": (
        png(8, 8, 8, 2, bytes(8 * 25), chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(20 << 20)))),
        DAMAGED,
    ),
}
GOOD = {
    "one-pixel.png": encoded(Image.new("RGB", (1, 1), "red"), "PNG"),
    "narrow.png": encoded(Image.new("RGB", (1, 200)), "PNG"),
    "bits.png": encoded(Image.new("1", (90, 60)), "PNG"),
    "cmyk.jpg": encoded(NOISE.convert("CMYK"), "JPEG"),
    "grey-16.png": png(40, 30, 16, 0, bytes(30 * 81)),
    "rgb-16.png": png(40, 30, 16, 2, bytes(30 * 241)),
    "rgba-16.png": png(40, 30, 16, 6, bytes(30 * 321)),
    "moving.gif": encoded(NOISE, "GIF", save_all=True, append_images=[NOISE.rotate(90)]),
    "moving.webp": encoded(NOISE, "WEBP", save_all=True, append_images=[NOISE.rotate(180)]),
    "moving.png": encoded(NOISE, "PNG", save_all=True, append_images=[NOISE.rotate(180)]),
}
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@pytest.fixture
def command(data: Path, tmp_path: Path) -> tuple[object, ...]:
    (tmp_path / "m.json").write_text(json.dumps([{"role": "user", "content": "header"}]))
    out = tmp_path / "out.npz"
    return "logits", data / "tiny-vl", "--messages", tmp_path / "m.json", "--out", out, "--image"


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_picture_is_one_sentence(
    refused: Callable[..., str], command: tuple[object, ...], tmp_path: Path, name: str
) -> None:
    content, sentence = BAD[name]
    (tmp_path / name).write_bytes(content)
    message = refused(*command, tmp_path / name)
    assert re.search(sentence, message), message
    assert not message.endswith("..")
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("name", GOOD)
def test_what_is_only_odd_is_read(run: Run, command: tuple[object, ...], tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(GOOD[name])
    result = run(*command, tmp_path / name)
    assert result.code == 0, result.err
    assert np.isfinite(np.load(tmp_path / "out.npz")["logits"]).all()


def test_folders_and_links_that_lead_nowhere(
    refused: Callable[..., str], command: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "dir.png").mkdir()
    (tmp_path / "gone.png").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    for name in ("dir.png", "gone.png", "loop.png", "missing.png"):
        assert f"The picture {tmp_path / name} cannot be read: " in refused(*command, tmp_path / name)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such devices here")
def test_devices_without_an_end_or_a_beginning(
    refused: Callable[..., str], command: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.pictures.MOST_BYTES", 1 << 20)
    assert "The picture /dev/zero is larger than 1 MiB" in refused(*command, "/dev/zero")
    assert "The picture /dev/null is empty." in refused(*command, "/dev/null")


@needs_pipes
def test_a_pipe_that_nobody_writes_into_is_not_waited_for(
    refused: Callable[..., str], command: tuple[object, ...], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert refused(*command, tmp_path / "pipe.png").endswith("pipe.png is empty.")


@needs_pipes
def test_a_picture_may_come_through_a_pipe(run: Run, command: tuple[object, ...], tmp_path: Path) -> None:
    """As from `--image <(…)`: whoever writes is there already, and may take some time."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as pipe:
            for begin in range(0, len(data), 1000):
                pipe.write(data[begin : begin + 1000])
                pipe.flush()

    data = encoded(NOISE, "PNG")
    writer = threading.Thread(target=write)
    writer.start()
    result = run(*command, f"/dev/fd/{reading}")
    writer.join()
    os.close(reading)
    assert result.code == 0, result.err
