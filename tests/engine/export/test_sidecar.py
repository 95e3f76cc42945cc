"""Sidecars that are made here: which tokens they keep, and that they draft."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.cancel import CancelToken
from engine.decoding.trace import TraceHeader, TraceWriter
from engine.errors import Cancelled, CheckpointError, OptionError
from engine.export.draft_vocabulary import Counts, choose_vocabulary, count_tokens
from engine.export.quantise import quantise
from engine.export.sidecar import make_sidecar
from engine.files.checkpoint import open_checkpoint
from engine.files.sidecar import Sidecar, open_sidecar
from engine.text.tokenizer import Tokenizer, open_tokenizer
from engine.weights.store import open_weights
from tests.engine.model.conftest import DATA

STORY = "Once there was a quiet girl called Victor. Victor lived near the river, and had 12 apples.\n"
ASK = [engine.Message("user", "Tell me a short story")]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return open_tokenizer(open_checkpoint(engine.demo_path()).tokenizer)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, demo: engine.Model) -> Path:
    """What the demo model itself says: a person's own text."""
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    questions = ("Tell me a short story", "What is the capital of France?", "Tell me a story about a fox and a lamp.")
    said = [reply(demo, [engine.Message("user", question)]).text for question in questions]
    path.write_text("\n".join(said * 120), encoding="utf-8")
    return path


def reply(model: engine.Model, messages: list[engine.Message], drafter: str = "mtp") -> engine.Finished:
    options = engine.GenerateOptions(draft=engine.DraftOptions(drafter), max_new_tokens=80)  # type: ignore[arg-type]
    ending = list(model.new_session().reply(messages, options))[-1]
    assert isinstance(ending, engine.Finished), ending
    return ending


def opened(path: Path) -> Sidecar:
    return open_sidecar(path, open_checkpoint(engine.demo_path()).config)


# -- which tokens ------------------------------------------------------------------------------------------------------


def test_control_tokens_bytes_and_digits_are_always_kept(tokenizer: Tokenizer) -> None:
    counts = np.zeros((2, 4096), np.int64)
    chosen = choose_vocabulary(Counts(counts[0], counts[1]), tokenizer, 400)
    kept = set(chosen.ids.tolist())
    assert len(kept) == 400
    for token in range(tokenizer.vocabulary):
        spelling = tokenizer.token_bytes(token)
        if tokenizer.is_special(token) or len(spelling) == 1 or spelling.isdigit():
            assert token in kept, spelling
    assert {tokenizer.token_bytes(token) for token in kept} >= {bytes([byte]) for byte in range(256)}
    assert chosen.coverage is None
    assert (np.diff(chosen.ids) > 0).all()


def test_the_rest_goes_by_frequency_then_by_id(tokenizer: Tokenizer) -> None:
    counts = np.zeros((2, 4096), np.int64)
    always = choose_vocabulary(Counts(counts[0], counts[1]), tokenizer, 300).always
    ordinary = [t for t in range(1000, 2000) if tokenizer.token_bytes(t) and not tokenizer.is_special(t)]
    counts[0, ordinary[-3:]] = [5, 9, 7]
    counts[1, ordinary[-4]] = 8
    for size, added in ((1, {-2}), (2, {-2, -4}), (3, {-2, -4, -1}), (4, {-1, -2, -3, -4})):
        chosen = choose_vocabulary(Counts(counts[0], counts[1]), tokenizer, always + size)
        assert {ordinary[i] for i in added} <= set(chosen.ids.tolist()), size
    assert (chosen.counted, chosen.held_out) == (29, 8)
    assert chosen.coverage == 0.0  # the choice that is tested knew nothing of that token


def test_sizes_that_are_impossible(tokenizer: Tokenizer) -> None:
    zero = np.zeros(4096, np.int64)
    for size in (0, 100, 5000):
        with pytest.raises(
            OptionError, match=rf"A draft head of {size:,} tokens is not possible here: choose from 2\d\d"
        ):
            choose_vocabulary(Counts(zero, zero), tokenizer, size)


def test_tokens_are_counted_and_some_held_out(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(STORY * 1000, encoding="utf-8")
    counts = count_tokens([path], [], tokenizer, 4096, CancelToken())
    whole = np.bincount(tokenizer.encode(STORY), minlength=4096) * 1000
    np.testing.assert_array_equal(counts.counted + counts.held_out, whole)
    assert 0.08 < counts.held_out.sum() / whole.sum() < 0.16
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        count_tokens([path], [], tokenizer, 4096, cancel)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match=r"text.txt is not UTF-8 text"):
        count_tokens([path], [], tokenizer, 4096, CancelToken())


def test_traces_count_prompt_and_reply(demo: engine.Model, tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokens = demo.encode("Tell me a short story")
    records = list(demo.new_session().complete(tokens, engine.GenerateOptions(max_new_tokens=30)))
    header = TraceHeader("0", "now", "demo", prompt_tokens=tuple(tokens))
    with TraceWriter(tmp_path / "run.jsonl", header) as writer:
        for record in records:
            writer.write(record)
    ending = records[-1]
    assert isinstance(ending, engine.Finished)
    counts = count_tokens([], [tmp_path / "run.jsonl"], tokenizer, 4096, CancelToken())
    np.testing.assert_array_equal(counts.counted, np.bincount([*tokens, *ending.tokens], minlength=4096))
    with pytest.raises(OptionError, match=r"run.jsonl is a trace of another model"):
        count_tokens([], [tmp_path / "run.jsonl"], tokenizer, 50, CancelToken())


# -- the file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "bits"), [("s.safetensors", "BF16", 0), ("s.gguf", "BF16", 0), ("s.safetensors", "Q8_0", 1)]
)
def test_it_drafts(name: str, kind: str, bits: int, demo: engine.Model, text: Path, tmp_path: Path) -> None:
    """With the acceptance of the whole head, for the kept tokens cover the text; replies stay the same."""
    made = make_sidecar("demo", tmp_path / name, 1000, texts=[text], wanted=kind)
    assert (made.rows, made.vocabulary) == (1000, 4096)
    assert made.held_out > 1000
    assert made.coverage is not None
    assert made.coverage > 0.99
    assert made.nbytes == (tmp_path / name).stat().st_size
    model = engine.load_model("demo", sidecar=tmp_path / name)
    try:
        assert model.info.mtp == "sidecar"
        assert model.info.draft_head_rows == 1000
        with_it, whole = reply(model, ASK), reply(demo, ASK)
        assert with_it.tokens == whole.tokens
        if not bits:
            assert (with_it.stats.tested, with_it.stats.accepted) == (whole.stats.tested, whole.stats.accepted)
        assert with_it.stats.acceptance is not None
        assert with_it.stats.acceptance > 0.7
        assert with_it.notes == ()
    finally:
        model.close()


def test_rows_and_layer_are_the_checkpoints(tmp_path: Path, text: Path) -> None:
    make_sidecar("demo", tmp_path / "s.safetensors", 700, texts=[text])
    make_sidecar("demo", tmp_path / "s.gguf", 700, texts=[text])
    checkpoint = open_checkpoint(engine.demo_path())
    plain, fast = opened(tmp_path / "s.safetensors"), opened(tmp_path / "s.gguf")
    assert plain.draft_ids is not None
    np.testing.assert_array_equal(plain.draft_ids, fast.draft_ids)
    stores = [open_weights(checkpoint), open_weights(checkpoint, plain), open_weights(checkpoint, fast)]
    head = stores[0].acquire("head")["weight"].data.reshape(4096, -1)
    for store in stores[1:]:
        kept = store.acquire("draft_head")["weight"].data.reshape(700, -1)
        np.testing.assert_array_equal(kept, head[plain.draft_ids])
        known = stores[0].acquire("mtp")
        for name, matrix in store.acquire("mtp").items():
            np.testing.assert_array_equal(matrix.data, known[name].data, name)
        for name in ("mtp.norm.weight", "mtp.layers.0.self_attn.q_norm.weight"):
            np.testing.assert_array_equal(store.vector(name), stores[0].vector(name))
    for store in stores:
        store.close()
    assert "mtp.embed_tokens.weight" in fast.tensors
    assert "mtp.embed_tokens.weight" not in plain.tensors


@pytest.mark.parametrize("out", ["s.safetensors", "s.gguf"])
def test_from_a_quantised_gguf_with_experts(out: str, tmp_path: Path) -> None:
    """Norms that are 1 + w already stay so; quantised matrices become floats, stacks of experts included."""
    text = tmp_path / "text.txt"
    text.write_text(STORY * 50, encoding="utf-8")
    source = DATA / "tiny-moe" / "gguf" / "tiny-moe-Q4_K_M.gguf"
    make_sidecar(source, tmp_path / out, 600, texts=[text], wanted="F32")
    checkpoint = open_checkpoint(source)
    sidecar = open_sidecar(tmp_path / out, checkpoint.config)
    assert sidecar.conventions.norm_offset == 0
    stores = [open_weights(checkpoint), open_weights(checkpoint, sidecar)]
    for name in ("mtp.norm.weight", "mtp.pre_fc_norm_hidden.weight"):
        np.testing.assert_array_equal(stores[1].vector(name), stores[0].vector(name))
    one, two = (store.experts("mtp", [5])[5]["down_proj.weight"] for store in stores)
    assert (one.format, two.format) == ("Q8_0", "F32")
    from engine.kernels.matmul import dequantise_rows

    exact = np.empty((one.rows, one.cols), np.float32)
    dequantise_rows(one, np.arange(one.rows), exact)
    np.testing.assert_array_equal(two.data.view(np.float32).reshape(exact.shape), exact)
    for store in stores:
        store.close()


def test_what_is_refused(tmp_path: Path, text: Path) -> None:
    quantise(DATA / "tiny-dense", tmp_path / "model.gguf", "Q8_0")
    with pytest.raises(OptionError, match="Nothing says which tokens to keep"):
        make_sidecar("demo", tmp_path / "s.safetensors", 700)
    with pytest.raises(OptionError, match=r"s.bin must end in .safetensors or .gguf"):
        make_sidecar("demo", tmp_path / "s.bin", 700, texts=[text])
    with pytest.raises(OptionError, match="cannot be written as Q4_K"):
        make_sidecar("demo", tmp_path / "s.gguf", 700, texts=[text], wanted="Q4_K")
    with pytest.raises(OptionError, match=r"model.gguf is the model that is read"):
        make_sidecar(tmp_path / "model.gguf", tmp_path / "model.gguf", 700, texts=[text], overwrite=True)
    with pytest.raises(CheckpointError, match="has no MTP layer that a sidecar could hold"):
        make_sidecar(without_mtp(tmp_path), tmp_path / "s.gguf", 700, texts=[text])
    assert not list(tmp_path.glob("s.*"))


def without_mtp(tmp_path: Path) -> Path:
    from tests.engine.other_exports import published, write

    stored = {name: item for name, item in published(DATA / "tiny-dense").items() if not name.startswith("mtp.")}
    return write(tmp_path / "trunk", DATA / "tiny-dense", {"model.safetensors": stored})
