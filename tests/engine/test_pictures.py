"""Pictures in a chat, and picture files that are not what they claim."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import engine
from engine import (
    DraftOptions,
    Failed,
    Finished,
    GenerateOptions,
    LoadOptions,
    Message,
    Picture,
    PrefillProgress,
    Round,
)
from engine.cancel import CancelToken
from engine.errors import PictureError
from engine.files.vision import VisionConfig
from engine.pictures import MOST_PIXELS, SMALLER, open_picture, picture_sizes, smart_size, token_count, within

VL = Path(__file__).parents[1] / "data" / "tiny-vl"
OPTIONS = GenerateOptions(max_new_tokens=24, ignore_eos=True)
PLAIN = replace(OPTIONS, draft=DraftOptions("none"))
CONFIG = VisionConfig(3, 64, 96, 4, 16, 2, 64, 256, 8192, 40960)


@pytest.fixture(scope="module", params=[False, True], ids=["placeholders", "soft"])
def model(request: pytest.FixtureRequest) -> Iterator[engine.Model]:
    options = LoadOptions(threads=1, soft_picture_drafts=request.param)
    opened = engine.load_model(VL, options=options)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def gold() -> dict[str, np.ndarray]:
    with np.load(VL / "goldens-vision.npz") as archive:
        return dict(archive)


def picture(name: str) -> Picture:
    return Picture.from_file(VL / "images" / f"{name}.png")


def finish(records: list[engine.Record]) -> Finished:
    assert isinstance(records[-1], Finished), records[-1]
    return records[-1]


@pytest.mark.parametrize("prompt", ["a", "b", "ab"])
@pytest.mark.parametrize("drafter", ["none", "mtp", "mtp+ngram"])
def test_greedy_with_pictures_is_the_reference_with_any_drafter(
    model: engine.Model, gold: dict[str, np.ndarray], prompt: str, drafter: str
) -> None:
    options = replace(OPTIONS, draft=DraftOptions(drafter))  # type: ignore[arg-type]
    session = model.new_session()
    records = list(session.complete(gold[f"{prompt}.ids"].tolist(), options, images=[picture(n) for n in prompt]))
    assert list(finish(records).tokens) == gold[f"{prompt}.greedy"].tolist()
    assert any(isinstance(r, PrefillProgress) and "block 2 of 3" in r.stage for r in records)


@pytest.mark.parametrize("prompt", ["a", "b", "ab"])
def test_rounds_with_pictures_are_those_of_the_reference(
    model: engine.Model, gold: dict[str, np.ndarray], prompt: str
) -> None:
    """Drafts and number accepted, round by round, for both things the MTP layer may see (k = 3)."""
    kind = "mtp_soft_spec_rounds" if model.soft_drafts else "mtp_spec_rounds"
    theirs = json.loads((VL / "goldens-vision.json").read_text())["prompts"][prompt][kind]
    options = replace(OPTIONS, max_new_tokens=40, draft=DraftOptions(tokens=3))
    pictures = [picture(n) for n in prompt]
    records = list(model.new_session().complete(gold[f"{prompt}.ids"].tolist(), options, images=pictures))
    ours = [r for r in records if isinstance(r, Round) and r.drafts]
    assert len(ours) >= len(theirs)
    for our, their in zip(ours, theirs, strict=False):
        assert [d.token for d in our.drafts] == their["draft"]
        assert sum(d.verdict == "accepted" for d in our.drafts) == their["accepted"]


WORDS = ("header", "and more", "what is it", "message text", "the other one")


def test_many_tokens_over_mixed_chats_are_those_of_plain_decoding(
    model: engine.Model, request: pytest.FixtureRequest
) -> None:
    """Text and picture turns in turn, every drafter and length; 20,000 tokens with --run-slow."""
    wanted = 10_000 if request.config.getoption("--run-slow") else 200  # for each of the two models
    rng, compared = np.random.default_rng(7), 0
    while compared < wanted:
        messages: list[Message] = []
        drafted, plain = model.new_session(), model.new_session()
        for _ in range(rng.integers(2, 5)):
            names = rng.choice(["", "a", "b", "ab"])
            messages.append(Message("user", str(rng.choice(WORDS)), tuple(picture(n) for n in names)))
            drafter = str(rng.choice(["mtp", "ngram", "mtp+ngram"]))
            length = str(rng.choice(["fixed", "adaptive", "cost-aware"]))
            draft = DraftOptions(drafter, int(rng.integers(0, 15)), length)  # type: ignore[arg-type]
            options = GenerateOptions(max_new_tokens=int(rng.integers(20, 60)), ignore_eos=True, draft=draft)
            ours = finish(list(drafted.reply(messages, options)))
            theirs = finish(list(plain.reply(messages, replace(options, draft=DraftOptions("none")))))
            assert ours.tokens == theirs.tokens
            compared += len(ours.tokens)
            messages.append(Message("assistant", ours.text))


def test_several_turns_with_pictures_reuse_the_caches(model: engine.Model) -> None:
    session, messages = model.new_session(), []
    for text, names in (("header", "a"), ("and", "b"), ("more", "")):
        messages.append(Message("user", text, tuple(picture(n) for n in names)))
        records = list(session.reply(messages, OPTIONS))
        plain = finish(list(model.new_session().reply(messages, PLAIN)))
        assert finish(records).tokens == plain.tokens
        messages.append(Message("assistant", finish(records).text))
    assert next(r for r in records if isinstance(r, PrefillProgress)).reused > 45


def test_another_picture_of_the_same_size_is_another_prompt(model: engine.Model) -> None:
    upside_down = Image.open(VL / "images" / "a.png").transpose(Image.Transpose.ROTATE_180)
    stream = io.BytesIO()
    upside_down.save(stream, "PNG")
    session = model.new_session()
    list(session.reply([Message("user", "header", (picture("a"),))], OPTIONS))
    other = [Message("user", "header", (Picture(stream.getvalue()),))]
    ours = finish(list(session.reply(other, OPTIONS)))
    assert ours.tokens == finish(list(model.new_session().reply(other, OPTIONS))).tokens


@pytest.mark.parametrize("looks", [2, 3, 4, 6])
@pytest.mark.parametrize("then", ["b", "ba", ""])
def test_a_prompt_stopped_while_its_pictures_are_read_leaves_nothing(
    model: engine.Model, looks: int, then: str
) -> None:
    """`looks`: blocks of the tower that are done when Stop comes; three a picture."""
    session, cancel = model.new_session(), CancelToken()
    asked = [Message("user", "What is it?", (picture("a"), picture("b")))]
    for seen, _ in enumerate((r for r in session.reply(asked, OPTIONS, cancel) if getattr(r, "stage", "")), 1):
        if seen == looks:
            cancel.cancel()
    again = [Message("user", "What is it?", tuple(picture(name) for name in then))]
    after = finish(list(session.reply(again, OPTIONS)))
    assert after.tokens == finish(list(model.new_session().reply(again, PLAIN))).tokens


def test_a_model_without_a_tower_says_so(demo: engine.Model) -> None:
    (failed,) = demo.new_session().reply([Message("user", "what is it?", (picture("a"),))], OPTIONS)
    assert isinstance(failed, Failed)
    assert failed.message == "demo cannot see pictures: it has no vision tower."


def test_placeholders_and_pictures_must_agree(model: engine.Model, gold: dict[str, np.ndarray]) -> None:
    ids = gold["ab.ids"].tolist()
    (failed,) = model.new_session().complete(ids, OPTIONS, images=[picture("a")])
    assert isinstance(failed, Failed)
    assert failed.message == "The tokens have 2 runs of the placeholder 952 for 1 pictures."
    (failed,) = model.new_session().complete(ids, OPTIONS, images=[picture("b"), picture("a")])
    assert isinstance(failed, Failed)
    assert failed.message == "b.png takes 35 tokens, but has 10 placeholders."


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def test_transparency_is_white_and_exif_turns() -> None:
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    assert open_picture(encoded(clear)).getpixel((5, 5)) == (255, 255, 255)
    sideways = Image.new("RGB", (64, 32), "red")
    exif = sideways.getexif()
    exif[0x0112] = 6
    assert open_picture(encoded(sideways, "JPEG", exif=exif)).size == (32, 64)


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I;16", "I", "F"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    image = Image.new(mode, (33, 40))
    opened = open_picture(encoded(image, "TIFF" if mode in ("CMYK", "F", "I") else "PNG"))
    assert (opened.mode, opened.size) == ("RGB", (33, 40))


def test_animations_give_their_first_frame() -> None:
    frames = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue")]
    animated = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert open_picture(animated).getpixel((0, 0)) == (255, 0, 0)


def test_what_is_no_picture_is_said_plainly() -> None:
    with pytest.raises(PictureError) as caught:
        open_picture(b"root:x:0:0", "notes.txt")
    assert str(caught.value).startswith("notes.txt cannot be read as a picture: it is damaged, or none of PNG, ")


def test_bombs_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    header = encoded(Image.new("1", (8, 8)))
    changed = b"IHDR" + (60_000).to_bytes(4) * 2 + header[24:29]
    bomb = header[:12] + changed + zlib.crc32(changed).to_bytes(4) + header[33:]
    said = r"bomb\.png has more than 178 million pixels; save it smaller\."
    with pytest.raises(PictureError, match=said):
        open_picture(bomb, "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # as other users of Pillow do
    with pytest.raises(PictureError, match=said):
        open_picture(bomb, "bomb.png")


def test_the_limit_is_where_pillow_has_its_own() -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert 2 * Image.MAX_IMAGE_PIXELS == MOST_PIXELS


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16", "F"])
def test_bands_of_rows_are_those_of_the_whole(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).integers(0, 255, (47, 61, 4), dtype=np.uint8)
    image = Image.fromarray(values, "RGBA")
    if mode == "I;16":
        image = Image.fromarray(values[:, :, 0].astype(np.uint16) * 257)
    elif mode != "RGBA":
        image = image.convert(mode)
    options = {"transparency": 3} if mode == "P" else {}
    data = encoded(image, "TIFF" if mode == "F" else "PNG", **options)
    whole = open_picture(data).tobytes()
    monkeypatch.setattr("engine.pictures._BAND_PIXELS", 500)
    assert open_picture(data).tobytes() == whole
    monkeypatch.setattr("engine.pictures._BAND_PIXELS", 1)
    assert open_picture(data).tobytes() == whole


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the unit differs, or there is no figure")
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "I;16"])
def test_a_large_picture_takes_little_more_than_its_pixels(tmp_path: Path, mode: str) -> None:
    """In bytes a pixel: up to 4 as it was decoded, and 4 as RGB."""
    (tmp_path / "large.png").write_bytes(encoded(Image.new(mode, (4000, 4000)), compress_level=1))
    code = (
        "import resource, sys, engine.pictures as pictures\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "from PIL import Image, ImageOps, PngImagePlugin\n"
        "before = peak()\n"
        "pictures.open_picture(data)\n"
        "print((peak() - before) / 4000**2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "large.png")], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 11


def test_narrow_pictures_are_refused() -> None:
    with pytest.raises(PictureError, match="too narrow"):
        smart_size(10, 2001, CONFIG)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"]), st.data())
def test_damaged_files_end_in_a_picture_or_our_error(kind: str, data: st.DataObject) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (24, 40, 3), dtype=np.uint8)
    raw = bytearray(encoded(Image.fromarray(noise), kind))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        opened = open_picture(bytes(raw))
    except PictureError:
        return
    assert opened.mode == "RGB"


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 3000))
def test_sizes_stay_within_the_processors_bounds(height: int, width: int) -> None:
    try:
        rows, columns = smart_size(height, width, CONFIG)
    except PictureError:
        assert max(height, width) > 200 * min(height, width)
        return
    assert rows % 32 == columns % 32 == 0
    assert rows * columns <= CONFIG.max_pixels or min(rows, columns) == 32


def test_a_picture_may_be_read_smaller_and_the_caches_tell_the_sizes_apart(model: engine.Model) -> None:
    stream = io.BytesIO()
    Image.effect_noise((900, 300), 80).convert("RGB").save(stream, "PNG")
    large = Picture(stream.getvalue())
    sizes = model.picture_sizes(large)
    assert [size.longest for size in sizes] == [None, 256]
    small = replace(large, longest=256)

    def ask(session: engine.ChatSession, image: Picture) -> Finished:
        return finish(list(session.reply([Message("user", "header", (image,))], OPTIONS)))

    session = model.new_session()
    asked = [ask(session, image) for image in (large, small, large)]
    took = [one.stats.prompt_tokens for one in asked]
    assert took[0] - took[1] == sizes[0].tokens - sizes[1].tokens > 0
    assert asked[0].tokens == asked[2].tokens
    assert asked[1].tokens == ask(model.new_session(), small).tokens


@given(st.integers(32, 6000), st.integers(32, 6000))
def test_smaller_sizes_are_smaller_and_each_takes_less(height: int, width: int) -> None:
    sizes = picture_sizes(height, width, replace(CONFIG, min_pixels=65_536, max_pixels=16_777_216))
    assert (sizes[0].longest, sizes[0].width, sizes[0].height) == (None, width, height)
    assert [size.tokens for size in sizes] == sorted({size.tokens for size in sizes}, reverse=True)
    for size in sizes[1:]:
        assert size.longest in SMALLER
        assert max(size.width, size.height) == size.longest < max(height, width)


def test_the_longest_side_is_limited_and_the_shape_kept() -> None:
    assert within(600, 1200, None) == (600, 1200)
    assert within(600, 1200, 1200) == (600, 1200)
    assert within(600, 1200, 300) == (150, 300)
    assert within(1, 200, 20) == (1, 20)
    assert within(32, 5462, 256) == (2, 256)
    assert token_count(*within(300, 900, 256), CONFIG) < token_count(300, 900, CONFIG)


def test_a_file_without_an_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.pictures.MOST_BYTES", 1 << 20)
    (tmp_path / "p.png").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(PictureError, match=r"p\.png is larger than 1 MiB; save it smaller"):
        Picture.from_file(tmp_path / "p.png")
    (tmp_path / "p.png").write_bytes(bytes(1 << 20))
    assert len(Picture.from_file(tmp_path / "p.png").data) == 1 << 20
