"""Whole models in other layouts than the published one say what the original says: exactly, where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.demo import demo_path
from engine.export.gguf_writer import u32
from engine.export.quantise import quantise
from engine.files.findings import Findings
from engine.files.gguf import read_gguf
from engine.model.mtp import MtpSession
from tests.engine import other_exports as other
from tests.engine.model.conftest import DATA, Loaded, load

MODELS = {"tiny-dense": DATA / "tiny-dense", "tiny-moe": DATA / "tiny-moe", "demo": demo_path()}
NEAR = 1e-4
"""Logits of the same values in another order of summation."""
IDS = [(37 * i * i + 11 * i + 3) % 900 for i in range(40)]
Open = Callable[..., Loaded]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Load a model with float activations; all are closed at the end."""
    models: list[Loaded] = []

    def open_model(path: Path) -> Loaded:
        models.append(load(path, float_activations=True))
        return models[-1]

    yield open_model
    for model in models:
        model.weights.close()


def logits(model: Loaded) -> np.ndarray:
    """[T, V] after each of `IDS`, and below them the MTP layer's."""
    session = model.session()
    hidden = session.forward(IDS)
    rows = session.logits(hidden)
    draft = MtpSession(model.mtp, model.checkpoint.config.vocabulary, 4096)
    drafted = draft.logits(draft.forward(hidden, [*IDS[1:], int(rows[-1].argmax())]))
    return np.concatenate([rows, drafted])


def greedy(model: Loaded, count: int = 40) -> list[int]:
    session = model.session()
    row, said = session.logits(session.forward(IDS))[-1:], []
    while len(said) < count:
        said.append(int(row.argmax()))
        row = session.logits(session.forward(said[-1:]))
    return said


# -- quantised files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kind"), [*((model, kind) for model in MODELS for kind in ("Q8_0", "Q4_K_M")), ("tiny-dense", "Q4_0")]
)
def test_a_quantised_file_says_what_its_weights_say_as_floats(
    model: str, kind: str, tmp_path: Path, opened: Open
) -> None:
    quantise(MODELS[model], tmp_path / "small.gguf", kind)
    quantise(tmp_path / "small.gguf", tmp_path / "floats.gguf", "F32")
    small, exact = opened(tmp_path / "small.gguf"), opened(tmp_path / "floats.gguf")
    assert {spec.format for spec in exact.checkpoint.tensors.values()} == {"F32"}
    np.testing.assert_allclose(logits(small), logits(exact), atol=NEAR)
    assert greedy(small) == greedy(exact)


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_lost_in_bf16(model: str, tmp_path: Path, opened: Open) -> None:
    """Value heads change their order, and with it the order of summation. A second time nothing changes."""
    quantise(MODELS[model], tmp_path / "one.gguf", "BF16")
    quantise(tmp_path / "one.gguf", tmp_path / "two.gguf", "BF16")
    original, one, two = opened(MODELS[model]), opened(tmp_path / "one.gguf"), opened(tmp_path / "two.gguf")
    np.testing.assert_allclose(logits(one), logits(original), atol=NEAR)
    assert greedy(one) == greedy(original)
    np.testing.assert_array_equal(logits(one), logits(two))


# -- safetensors as others write them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["tiny-dense", "tiny-moe"])
def test_an_mlx_export(model: str, tmp_path: Path, opened: Open) -> None:
    stored = other.as_mlx(other.published(MODELS[model]))
    export = other.write(tmp_path / "mlx", MODELS[model], {"model.safetensors": stored})
    np.testing.assert_array_equal(logits(opened(export)), logits(opened(MODELS[model])))


def test_an_mlx_trunk_with_a_published_mtp_layer(tmp_path: Path, opened: Open) -> None:
    """Each file is judged by itself: neither has its norms shifted twice or never."""
    stored = other.published(MODELS["tiny-dense"])
    trunk = {name: item for name, item in stored.items() if not name.startswith("mtp.")}
    mtp = {name: item for name, item in stored.items() if name.startswith("mtp.")}
    assert mtp
    files = {"model.safetensors": other.as_mlx(trunk), "mtp.safetensors": mtp}
    export = other.write(tmp_path / "mixed", MODELS["tiny-dense"], files)
    np.testing.assert_array_equal(logits(opened(export)), logits(opened(MODELS["tiny-dense"])))


@pytest.mark.parametrize(("model", "per_expert"), [("tiny-dense", False), ("tiny-moe", False), ("tiny-moe", True)])
def test_fp8_with_block_scales(model: str, per_expert: bool, tmp_path: Path, opened: Open) -> None:
    coded, decoded = other.as_fp8(other.published(MODELS[model]), per_expert)
    assert sum(name.endswith("_scale_inv") for name in coded) > 30
    small = opened(other.write(tmp_path / "fp8", MODELS[model], {"model.safetensors": coded}))
    exact = opened(other.write(tmp_path / "floats", MODELS[model], {"model.safetensors": decoded}))
    np.testing.assert_allclose(logits(small), logits(exact), atol=NEAR)
    assert greedy(small) == greedy(exact)
    quantise(tmp_path / "fp8", tmp_path / "floats.gguf", "F32")
    np.testing.assert_allclose(logits(opened(tmp_path / "floats.gguf")), logits(exact), atol=NEAR)


@pytest.mark.parametrize("suffix", [".q8", ".q4"])
def test_weights_that_are_stored_quantised(suffix: str, tmp_path: Path, opened: Open) -> None:
    """As the same blocks in a GGUF file; and what is stored wins over what stands beside it."""
    published = other.published(MODELS["tiny-dense"])
    stored = other.stored_quantised(published, suffix)
    alone = opened(other.write(tmp_path / "alone", MODELS["tiny-dense"], {"model.safetensors": stored}))
    quantise(tmp_path / "alone", tmp_path / "floats.gguf", "F32")
    expected = logits(opened(tmp_path / "floats.gguf"))
    np.testing.assert_allclose(logits(alone), expected, atol=NEAR)
    beside = other.write(tmp_path / "beside", MODELS["tiny-dense"], {"model.safetensors": published | stored})
    np.testing.assert_array_equal(logits(opened(beside)), logits(alone))


# -- GGUF files in parts -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny-dense as one GGUF file."""
    path = tmp_path_factory.mktemp("whole") / "whole.gguf"
    quantise(MODELS["tiny-dense"], path, "BF16")
    return path


def names(path: Path) -> list[str]:
    return list(read_gguf(path, Findings()).tensors)


def test_a_split_file(whole: Path, tmp_path: Path, opened: Open) -> None:
    all_names = names(whole)
    for number, part in enumerate((all_names[:50], all_names[50:90], all_names[90:])):
        keys = {"split.no": u32(number), "split.count": u32(3), "split.tensors.count": u32(len(all_names))}
        other.rewrite_gguf(whole, tmp_path / f"split-{number + 1:05d}-of-00003.gguf", part, keys)
    expected = logits(opened(whole))
    for number in (1, 3):
        split = opened(tmp_path / f"split-{number:05d}-of-00003.gguf")
        np.testing.assert_array_equal(logits(split), expected)
    quantise(tmp_path / "split-00002-of-00003.gguf", tmp_path / "joined.gguf", "BF16")
    np.testing.assert_array_equal(logits(opened(tmp_path / "joined.gguf")), expected)


def reply(model: engine.Model, drafter: str = "mtp") -> engine.Finished:
    options = engine.GenerateOptions(draft=engine.DraftOptions(drafter), max_new_tokens=40, ignore_eos=True)  # type: ignore[arg-type]
    ending = list(model.new_session().complete(IDS, options))[-1]
    assert isinstance(ending, engine.Finished), ending
    return ending


def test_without_the_mtp_block_and_with_it_apart(whole: Path, tmp_path: Path) -> None:
    """The block's file is a sidecar that drafts exactly as the block inside did."""
    block = [name for name in names(whole) if name.startswith("blk.8.")]
    assert len(block) == 15
    trunk = other.rewrite_gguf(whole, tmp_path / "trunk.gguf", [name for name in names(whole) if name not in block])
    apart = other.rewrite_gguf(whole, tmp_path / "mtp-only.gguf", block)
    models = [engine.load_model(whole), engine.load_model(trunk), engine.load_model(trunk, sidecar=apart)]
    try:
        inside, _, beside = models
        assert [model.info.mtp for model in models] == ["checkpoint", "none", "sidecar"]
        endings = [reply(model) for model in models]
        assert len({ending.tokens for ending in endings}) == 1
        assert endings[1].stats.drafted == 0
        assert "0 drafts" in endings[1].notes[0]
        assert endings[0].stats.tested == endings[2].stats.tested > 0
        assert endings[0].stats.accepted == endings[2].stats.accepted
        known = inside.logits(IDS, mtp=True)["mtp_logits"]
        np.testing.assert_array_equal(beside.logits(IDS, mtp=True)["mtp_logits"], known)
    finally:
        for model in models:
            model.close()
