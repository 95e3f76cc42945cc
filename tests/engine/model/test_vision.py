"""Pictures against the reference: preprocessing, every stage of the tower, positions, logits, drafts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.files.vision import VisionSource, open_vision
from engine.kernels.context import ComputeContext
from engine.kernels.rope import rope_tables
from engine.kernels.vision import bias_gelu_tanh
from engine.model.mtp import MtpSession
from engine.model.positions import VisionSpan, rope_positions
from engine.model.target import TargetSession
from engine.model.vision_tower import VisionTower, merged_order, position_taps, tower_rotary
from engine.pictures import Patches, open_picture, patches, smart_size
from tests.engine.model.conftest import DATA, Loaded, load

VL = DATA / "tiny-vl"
SOFT = 2e-5
BLOCK = 2e-4
LOGITS = 5e-4
PROMPTS = {"a": "a", "b": "b", "ab": "ab"}


@pytest.fixture(scope="module")
def gold() -> dict[str, np.ndarray]:
    with np.load(VL / "goldens-vision.npz") as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def tiny_vl() -> Iterator[Loaded]:
    model = load(VL)
    yield model
    model.weights.close()


@pytest.fixture(scope="module", params=["published", "mmproj"])
def source(request: pytest.FixtureRequest) -> VisionSource:
    path = VL if request.param == "published" else VL / "mmproj-tiny-vl-bf16.gguf"
    found = open_vision(path, 256)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def soft(gold: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    tower = VisionTower(published(), ComputeContext(1))
    return {name: tower.encode(picture.values, picture.grid) for name in "ab" for picture in [read(name)]}


def published() -> VisionSource:
    source = open_vision(VL, 256)
    assert source is not None
    return source


def read(name: str) -> Patches:
    return patches(open_picture((VL / "images" / f"{name}.png").read_bytes()), published().config)


def spans_of(grids: np.ndarray, ids: np.ndarray, image_id: int = 952) -> list[VisionSpan]:
    starts = [i for i, t in enumerate(ids) if t == image_id and (i == 0 or ids[i - 1] != image_id)]
    return [VisionSpan(s, int(h) // 2, int(w) // 2) for s, (_, h, w) in zip(starts, grids, strict=True)]


@pytest.mark.parametrize("name", ["a", "b"])
def test_preprocessing_without_scaling_is_exact(gold: dict[str, np.ndarray], name: str) -> None:
    picture = read(name)
    assert picture.grid == tuple(gold[f"img_{name}.grid_thw"][1:])
    np.testing.assert_allclose(picture.values, gold[f"img_{name}.pixel_values"], atol=2e-7)


@pytest.mark.parametrize("name", ["resize", "upscale", "downscale"])
def test_scaled_pictures_are_within_a_level_of_the_published_processor(gold: dict[str, np.ndarray], name: str) -> None:
    picture = read(name)
    height, width = (int(v) for v in gold[f"img_{name}.resized_hw"])
    assert picture.grid == (height // 16, width // 16)
    row, column = merged_order(picture.grid, 2)
    tiles = np.empty((height // 16, width // 16, 3, 16, 16), np.float32)
    tiles[row, column] = picture.values.reshape(-1, 3, 2, 16, 16)[:, :, 0]
    pixels = (tiles.transpose(0, 3, 1, 4, 2).reshape(height, width, 3) + 1) * 127.5
    theirs = gold[f"img_{name}.resized_torch"].astype(np.float32)
    difference = np.abs(pixels[: theirs.shape[0], : theirs.shape[1]] - theirs)
    assert difference.max() < 2.01
    assert (difference > 0.5).mean() < 0.05


def test_smart_size_rounds_half_to_even(gold: dict[str, np.ndarray]) -> None:
    config = published().config
    for h, w, low, high, height, width in gold["smart_resize"].tolist():
        assert smart_size(h, w, replace(config, min_pixels=low, max_pixels=high)) == (height, width)


@pytest.mark.parametrize("name", ["a", "b"])
def test_tower(gold: dict[str, np.ndarray], source: VisionSource, name: str) -> None:
    picture = read(name)
    ids, shares = position_taps(picture.grid, 8, 2)
    np.testing.assert_array_equal(ids, gold[f"img_{name}.interp_idx"])
    np.testing.assert_allclose(shares, gold[f"img_{name}.interp_w"], atol=1e-6)
    soft = VisionTower(source, ComputeContext(1)).encode(picture.values, picture.grid)
    np.testing.assert_allclose(soft, gold[f"img_{name}.merged"], atol=SOFT)


@pytest.mark.parametrize("name", ["a", "b"])
def test_every_stage_of_the_tower(gold: dict[str, np.ndarray], source: VisionSource, name: str) -> None:
    """Patch embedding, position embedding, each half of the first block, and the residual stream after every block."""
    picture, tower = read(name), VisionTower(source, ComputeContext(1))
    row, column = merged_order(picture.grid, 2)
    np.testing.assert_array_equal(np.stack([row, column], 1), gold[f"img_{name}.pos_hw"])
    x = tower._linear("patch_embed.proj", picture.values, tower._patch_matrix())
    positions = tower._position_embedding(picture.grid)
    if name == "a":
        np.testing.assert_allclose(x, gold["img_a.patch_embed"], atol=SOFT)
        np.testing.assert_allclose(positions, gold["img_a.pos_embed"], atol=SOFT)
    x += positions
    cos, sin = tower_rotary(picture.grid, 16, 2)
    if name == "a":
        attended = tower._attention("blocks.0.", tower._norm("blocks.0.norm1", x), cos, sin)
        np.testing.assert_allclose(attended, gold["img_a.block0.attn_out"], atol=BLOCK)
        normed = tower._norm("blocks.0.norm2", x + attended)
        hidden = tower._linear("blocks.0.mlp.linear_fc1", normed, bias=bias_gelu_tanh)
        fed = tower._linear("blocks.0.mlp.linear_fc2", hidden)
        np.testing.assert_allclose(fed, gold["img_a.block0.mlp_out"], atol=BLOCK)
    for index in range(3):
        tower._block(index, x, cos, sin)
        np.testing.assert_allclose(x, gold[f"img_{name}.block{index}"], atol=BLOCK)


def test_tower_rotary(gold: dict[str, np.ndarray]) -> None:
    cos, sin = tower_rotary(read("a").grid, 16, 2)
    np.testing.assert_allclose(cos, gold["img_a.rope_cos"], atol=1e-6)
    np.testing.assert_allclose(sin, gold["img_a.rope_sin"], atol=1e-6)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_o10_positions_and_rotary_tables(gold: dict[str, np.ndarray], prompt: str) -> None:
    ids = gold[f"{prompt}.ids"]
    spans = spans_of(gold[f"{prompt}.grid_thw"], ids)
    positions = rope_positions(spans, 0, len(ids))
    np.testing.assert_array_equal(positions, gold[f"{prompt}.position_ids"])
    pieces = [rope_positions(spans, i, 3)[:, : len(ids) - i] for i in range(spans[0].start, len(ids), 3)]
    np.testing.assert_array_equal(np.concatenate(pieces, 1), positions[:, spans[0].start :])
    cos, sin = rope_tables(positions, 16, 10_000_000.0, (3, 3, 2))
    np.testing.assert_allclose(cos, gold[f"{prompt}.rope_cos"][:, :8], atol=1e-6)
    np.testing.assert_allclose(sin, gold[f"{prompt}.rope_sin"][:, :8], atol=1e-6)


def session_with_pictures(
    model: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray], prompt: str
) -> TargetSession:
    session = model.session()
    for name, span in zip(PROMPTS[prompt], spans_of(gold[f"{prompt}.grid_thw"], gold[f"{prompt}.ids"]), strict=True):
        session.place_picture(span, soft[name])
    return session


@pytest.mark.parametrize("prompt", PROMPTS)
def test_logits_and_greedy(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray], prompt: str
) -> None:
    session = session_with_pictures(tiny_vl, gold, soft, prompt)
    hidden = session.forward(gold[f"{prompt}.ids"].tolist())
    logits = session.logits(hidden)
    np.testing.assert_allclose(logits[-8:], gold[f"{prompt}.logits"], atol=LOGITS)
    np.testing.assert_array_equal(logits.argmax(1), gold[f"{prompt}.argmax_all"])
    token, said = int(logits[-1].argmax()), []
    for _ in range(24):
        said.append(token)
        row = session.logits(session.forward([token]))[0]
        token = int(row.argmax())
    assert said == gold[f"{prompt}.greedy"].tolist()
    np.testing.assert_allclose(row, gold[f"{prompt}.logits_last_step"], atol=LOGITS)


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_a_picture_may_be_read_in_pieces(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray], cut: int
) -> None:
    ids = gold["ab.ids"].tolist()
    whole = session_with_pictures(tiny_vl, gold, soft, "ab").forward(ids)
    session = session_with_pictures(tiny_vl, gold, soft, "ab")
    rows = [session.forward(ids[i : i + cut]) for i in range(0, len(ids), cut)]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_spans_are_dropped_when_a_rewind_goes_before_them(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray]
) -> None:
    session = session_with_pictures(tiny_vl, gold, soft, "ab")
    ids = gold["ab.ids"].tolist()
    session.forward(ids[:3])
    snapshot = session.snapshot()
    session.forward(ids[3:])
    session.restore(snapshot)
    assert [s.start for s in session.state.spans] == [
        s.start for s in spans_of(gold["ab.grid_thw"], gold["ab.ids"]) if s.start < 3
    ]
    plain = tiny_vl.session()
    plain.forward(ids[:3])
    text = [5, 6, 7]
    np.testing.assert_array_equal(session.forward(text), plain.forward(text))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_o27_mtp_sees_placeholders_at_the_same_positions(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray], prompt: str
) -> None:
    hidden = session_with_pictures(tiny_vl, gold, soft, prompt).forward(gold[f"{prompt}.ids"].tolist())
    mtp = MtpSession(tiny_vl.mtp, 1024, 4096)
    mtp.spans = spans_of(gold[f"{prompt}.grid_thw"], gold[f"{prompt}.ids"])
    out = mtp.forward(hidden, gold[f"{prompt}.mtp_tokens"].tolist())
    np.testing.assert_allclose(out, gold[f"{prompt}.mtp_out"], atol=2e-3)
    np.testing.assert_allclose(mtp.logits(out)[-8:], gold[f"{prompt}.mtp_logits"], atol=2e-3)
    row, drafts = out[-1:], []
    for step in range(4):
        logits = mtp.logits(row)[0]
        np.testing.assert_allclose(logits, gold[f"{prompt}.mtp_draft_logits"][step], atol=2e-3)
        drafts.append(int(logits.argmax()))
        row = mtp.forward(row, drafts[-1:])
    assert drafts == gold[f"{prompt}.mtp_draft_tokens"].tolist()


@pytest.mark.parametrize("prompt", PROMPTS)
def test_mtp_with_soft_tokens(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray], prompt: str
) -> None:
    """The other convention: the MTP layer sees the picture's embeddings where the placeholders stand."""
    hidden = session_with_pictures(tiny_vl, gold, soft, prompt).forward(gold[f"{prompt}.ids"].tolist())
    mtp = MtpSession(tiny_vl.mtp, 1024, 4096)
    mtp.spans = spans_of(gold[f"{prompt}.grid_thw"], gold[f"{prompt}.ids"])
    mtp.soft_tokens = {span: soft[name] for span, name in zip(mtp.spans, PROMPTS[prompt], strict=True)}
    out = mtp.forward(hidden, gold[f"{prompt}.mtp_tokens"].tolist())
    logits = mtp.logits(out)
    np.testing.assert_allclose(out[-2:], gold[f"{prompt}.mtp_soft_out"], atol=2e-3)
    np.testing.assert_allclose(logits[-2:], gold[f"{prompt}.mtp_soft_logits"], atol=2e-3)
    np.testing.assert_array_equal(logits.argmax(1), gold[f"{prompt}.mtp_soft_argmax_all"])
    row, drafts = out[-1:], []
    for _ in range(4):
        drafts.append(int(mtp.logits(row)[0].argmax()))
        row = mtp.forward(row, drafts[-1:])
    assert drafts == gold[f"{prompt}.mtp_soft_draft_tokens"].tolist()


def test_a_second_turn_goes_on_behind_the_picture(
    tiny_vl: Loaded, gold: dict[str, np.ndarray], soft: dict[str, np.ndarray]
) -> None:
    session = session_with_pictures(tiny_vl, gold, soft, "a")
    session.forward(gold["a.ids"].tolist())
    np.testing.assert_array_equal(
        rope_positions(session.state.spans, session.position, 24)[0], gold["a.greedy_positions"]
    )
    session.forward(gold["a.greedy"].tolist())
    start, ids = session.position, gold["a_turn2.ids"]
    for span in spans_of(gold["b.grid_thw"], ids):
        session.place_picture(VisionSpan(start + span.start, span.height, span.width), soft["b"])
    positions = rope_positions(session.state.spans, start, len(ids))
    np.testing.assert_array_equal(positions, gold["a_turn2.position_ids"])
    row = session.logits(session.forward(ids.tolist()))
    np.testing.assert_allclose(row[-4:], gold["a_turn2.logits"], atol=LOGITS)
    said: list[int] = []
    for _ in range(8):
        said.append(int(row[-1].argmax()))
        row = session.logits(session.forward(said[-1:]))
    assert said == gold["a_turn2.greedy"].tolist()
