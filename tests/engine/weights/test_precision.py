"""Quantising while loading: which matrices, to what, in how much memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.cancel import CancelToken
from engine.errors import Cancelled, OptionError
from engine.export.quantise import quantise
from engine.files.checkpoint import open_checkpoint
from engine.files.sidecar import open_sidecar
from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from engine.quantise.encode import encode_rows
from engine.weights.precision import bytes_in_memory, format_in_memory
from engine.weights.sizes import place
from engine.weights.store import open_weights
from tests.engine import other_exports as other
from tests.engine.model.conftest import DATA

KEPT = ("fc.weight", "mlp.gate.weight", "linear_attn.in_proj_a.weight", "linear_attn.in_proj_b.weight")


def floats(matrix: Matrix) -> np.ndarray:
    out = np.empty((matrix.rows, matrix.cols), np.float32)
    dequantise_rows(matrix, np.arange(matrix.rows), out)
    return out


@pytest.mark.parametrize("model", ["tiny-dense", "tiny-moe"])
@pytest.mark.parametrize(("precision", "kind"), [("q8", "Q8_0"), ("q4", "Q4_0")])
def test_matrices_become_the_blocks_of_their_values(model: str, precision: str, kind: str) -> None:
    checkpoint = open_checkpoint(DATA / model)
    exact, small = open_weights(checkpoint), open_weights(checkpoint, precision=precision)
    for unit in exact.units:
        before, after = dict(exact.acquire(unit.name)), dict(small.acquire(unit.name))
        if unit.parts:
            for expert in (0, 5):
                before |= {f"{expert}.{n}": m for n, m in exact.experts(unit.name, [expert])[expert].items()}
                after |= {f"{expert}.{n}": m for n, m in small.experts(unit.name, [expert])[expert].items()}
        assert before.keys() == after.keys()
        for name, matrix in after.items():
            if name.endswith(KEPT):
                assert matrix.format == "BF16"
                np.testing.assert_array_equal(matrix.data, before[name].data)
            else:
                assert matrix.format == kind, name
                expected = encode_rows(floats(before[name]), kind)
                np.testing.assert_array_equal(matrix.data, expected.reshape(-1), name)
    for name in ("norm.weight", "layers.0.linear_attn.conv1d.weight"):
        np.testing.assert_array_equal(exact.vector(name), small.vector(name))
    exact.close()
    small.close()


def test_embeddings_are_quantised_with_the_head_or_apart() -> None:
    for model in ("tiny-dense", "tiny-moe"):  # tied and not
        checkpoint = open_checkpoint(DATA / model)
        exact, small = open_weights(checkpoint), open_weights(checkpoint, precision="q8")
        ids = np.array([3, 900, 3], np.int64)
        one, two = np.empty((2, 3, checkpoint.config.hidden_size), np.float32)
        exact.embedding(ids, one)
        small.embedding(ids, two)
        blocks = Matrix("Q8_0", 3, one.shape[1], encode_rows(one, "Q8_0").reshape(-1))
        np.testing.assert_array_equal(two, floats(blocks))
        exact.close()
        small.close()


def test_what_is_stored_quantised_stays(tmp_path: Path) -> None:
    stored = other.stored_quantised(other.published(DATA / "tiny-dense"), ".q4")
    folder = other.write(tmp_path / "stored", DATA / "tiny-dense", {"model.safetensors": stored})
    weights = open_weights(open_checkpoint(folder), precision="q8")
    assert weights.acquire("layers.0")["mlp.up_proj.weight"].format == "Q4_0"
    weights.close()
    quantise(DATA / "tiny-dense", tmp_path / "small.gguf", "Q4_K_M")
    before, after = (open_weights(open_checkpoint(tmp_path / "small.gguf"), precision=p) for p in (None, "q8"))
    for name, matrix in after.acquire("layers.3").items():
        known = before.acquire("layers.3")[name]
        assert matrix.format == known.format
        np.testing.assert_array_equal(matrix.data, known.data)
    before.close()
    after.close()


def test_rows_that_are_no_whole_blocks_stay() -> None:
    assert format_in_memory("layers.0.mlp.up_proj.weight", "BF16", 96, "q8") == "Q8_0"
    assert format_in_memory("layers.0.mlp.up_proj.weight", "BF16", 100, "q8") == "BF16"
    assert format_in_memory("layers.0.mlp.up_proj.weight", "F8_E4M3", 96, "q4") == "F8_E4M3"
    assert format_in_memory("layers.0.mlp.up_proj.weight", "BF16", 96, None) == "BF16"


def test_memory_is_counted_as_it_is_and_the_budget_holds() -> None:
    checkpoint = open_checkpoint(DATA / "tiny-moe")
    needed = bytes_in_memory(place(checkpoint, None, 3), "q8")
    assert 0.5 < needed / checkpoint.weight_bytes < 0.6
    weights = open_weights(checkpoint, precision="q8", budget=needed)
    assert weights.statistics().resident_bytes == needed
    assert weights.allocation.complete
    exact = open_weights(checkpoint)
    assert 0.5 < weights.draft_step_bytes / exact.draft_step_bytes < 0.6
    exact.close()
    with pytest.raises(
        OptionError, match=r"Quantised to q8 this model takes [56]\.\d MB, but the memory budget is 5\.0 MB"
    ):
        weights.set_budget(5_000_000)
    np.testing.assert_array_equal(weights.acquire("head")["weight"].rows, 1024)  # still open
    weights.close()


def test_progress_reaches_the_end_once_and_stop_is_heard() -> None:
    checkpoint = open_checkpoint(DATA / "tiny-moe")
    shares: list[float] = []
    open_weights(checkpoint, precision="q8", progress=lambda done, total: shares.append(done / total)).close()
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) >= 5
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        open_weights(checkpoint, precision="q8", progress=lambda *_: cancel.cancel(), cancel=cancel)


def test_a_sidecar_is_quantised_too() -> None:
    checkpoint = open_checkpoint(engine.demo_path())
    sidecar = open_sidecar(engine.demo_sidecar_path(), checkpoint.config)
    weights = open_weights(checkpoint, sidecar, precision="q4")
    assert weights.acquire("draft_head")["weight"].format == "Q4_0"
    assert weights.acquire("mtp")["fc.weight"].format == "BF16"
    weights.close()


def test_a_loaded_model_says_what_it_is_in_and_drafts_never_change_the_reply() -> None:
    model = engine.load_model("demo", options=engine.LoadOptions(threads=1, precision="q8"))
    try:
        assert model.info.formats == ("BF16", "Q8_0")
        endings = []
        for drafter in ("none", "mtp"):
            options = engine.GenerateOptions(draft=engine.DraftOptions(drafter), max_new_tokens=50)  # type: ignore[arg-type]
            message = engine.Message("user", "Tell me a short story")
            endings.append(list(model.new_session().reply([message], options))[-1])
        plain, drafted = endings
        assert isinstance(plain, engine.Finished)
        assert isinstance(drafted, engine.Finished)
        assert plain.tokens == drafted.tokens
        assert drafted.stats.acceptance is not None
        assert drafted.stats.acceptance > 0.6
    finally:
        model.close()


def test_other_words_are_refused() -> None:
    with pytest.raises(OptionError, match="precision is q5, but it must be q8 or q4"):
        engine.LoadOptions(precision="q5")  # type: ignore[arg-type]
