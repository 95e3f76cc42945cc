"""`quantise` against what llama.cpp's converter and llama-quantize write, and its promises about files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, CheckpointError, OptionError, WriteError
from engine.export import atomic, rows
from engine.export.choose import choose_format
from engine.export.quantise import quantise
from engine.files.checkpoint import open_checkpoint
from engine.files.findings import Findings
from engine.files.gguf import GgufFile, read_gguf
from tests.engine.files import build, build_gguf
from tests.engine.model.conftest import DATA
from tests.engine.quantise.test_encode import bfloat16

MODELS = ["tiny-dense", "tiny-moe"]


def read(path: Path) -> GgufFile:
    return read_gguf(path, Findings())


def plain(value: Any) -> Any:
    """A metadata value as JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def reference(model: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((DATA / model / "gguf-reference.json").read_text())
    return result


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("model", MODELS)
def test_the_converter_says_the_same(model: str, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    quantise(DATA / model, out, "F32")
    written, known = read(out), reference(model)
    metadata = {key: plain(value) for key, value in written.metadata.items() if not key.startswith("tokenizer.")}
    assert metadata == {key: value for key, value in known["metadata"].items() if key != "general.size_label"}
    tensors = {name: [[*reversed(spec.shape)], spec.format] for name, spec in written.tensors.items()}
    flat = {
        name: [[size for size in shape if size > 1 or len(shape) == 1], t]
        for name, (shape, t) in known["tensors_f32"].items()
    }
    assert {
        name: [[size for size in shape if size > 1 or len(shape) == 1], t] for name, (shape, t) in tensors.items()
    } == flat
    theirs = read(DATA / model / "gguf" / f"{model}-Q4_K_M.gguf").metadata
    for key in (key for key in theirs if key.startswith("tokenizer.")):
        assert plain(written.metadata[key]) == plain(theirs[key]), key
    assert [key for key in written.metadata if key.startswith("tokenizer.") and key not in theirs] == []


@pytest.mark.parametrize("model", MODELS)
def test_the_library_reads_the_same_values_as_from_llama_quantize(model: str, tmp_path: Path) -> None:
    """Norms, decays, convolutions: bit for bit. Q8_0 is rounded alike, so whole files agree."""
    out = tmp_path / "out.gguf"
    quant = "Q8_0" if model == "tiny-dense" else "Q4_K_M"
    quantise(DATA / model, out, quant)
    ours = {tensor.name: tensor for tensor in gguf.GGUFReader(out).tensors}
    same = 0
    for theirs in gguf.GGUFReader(DATA / model / "gguf" / f"{model}-{quant}.gguf").tensors:
        mine = ours.pop(theirs.name)
        if theirs.tensor_type.name in ("F32", "Q8_0") and mine.tensor_type == theirs.tensor_type:
            exact = not theirs.name.endswith("ssm_a")  # exp of another library
            np.testing.assert_allclose(mine.data, theirs.data, rtol=0 if exact else 2e-7, err_msg=theirs.name)
            same += 1
    assert ours == {}
    assert same > 40


def test_value_heads_go_from_grouped_to_tiled(tmp_path: Path) -> None:
    """By the definition, once more by hand: GGUF's head r * nk + k is the published head k * (nv / nk) + r."""
    out = tmp_path / "out.gguf"
    quantise(DATA / "tiny-moe", out, "F32")  # 2 key heads, 8 value heads of 64
    written = {tensor.name: tensor.data for tensor in gguf.GGUFReader(out).tensors}
    checkpoint = open_checkpoint(DATA / "tiny-moe")

    def published(name: str) -> np.ndarray:
        spec = checkpoint.spec(name)
        return bfloat16(spec.file, spec.file_name)

    z, a, projected = (published(f"layers.1.linear_attn.{x}.weight") for x in ("in_proj_z", "in_proj_a", "out_proj"))
    qkv = published("layers.1.linear_attn.in_proj_qkv.weight")
    for r in range(4):
        for k in range(2):
            new, old = r * 2 + k, k * 4 + r
            rows_new, rows_old = slice(64 * new, 64 * new + 64), slice(64 * old, 64 * old + 64)
            np.testing.assert_array_equal(written["blk.1.attn_gate.weight"][rows_new], z[rows_old])
            np.testing.assert_array_equal(written["blk.1.ssm_alpha.weight"][new], a[old])
            np.testing.assert_array_equal(written["blk.1.ssm_out.weight"][:, rows_new], projected[:, rows_old])
            np.testing.assert_array_equal(written["blk.1.attn_qkv.weight"][256:][rows_new], qkv[256:][rows_old])
    np.testing.assert_array_equal(written["blk.1.attn_qkv.weight"][:256], qkv[:256])


def test_mixtures_are_those_of_llama_quantize(tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    quantise(DATA / "tiny-dense", out, "q4_k_m")
    theirs = reference("tiny-dense")["types_Q4_K_M"]
    kept = ("ssm_alpha.weight", "ssm_beta.weight", "nextn.eh_proj.weight")
    for name, spec in read(out).tensors.items():
        assert spec.format == ("BF16" if name.endswith(kept) else theirs[name]), name


def test_rows_that_are_no_multiple_of_256(tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    quantise(DATA / "tiny-moe", out, "Q4_K")
    formats = {name: spec.format for name, spec in read(out).tensors.items()}
    assert formats["blk.0.ffn_down_exps.weight"] == formats["blk.0.ffn_down_shexp.weight"] == "Q5_0"
    assert formats["blk.0.ffn_up_exps.weight"] == "Q4_K"
    assert formats["blk.0.ffn_gate_inp.weight"] == formats["blk.0.ffn_gate_inp_shexp.weight"] == "F32"
    assert choose_format("layers.0.mlp.down_proj.weight", (256, 100), "BF16", "Q4_K", 8, head=False) == "BF16"
    assert choose_format("layers.0.mlp.down_proj.weight", (256, 96), "F16", "Q6_K", 8, head=False) == "Q8_0"


def test_what_is_quantised_already_gets_no_more_bits(tmp_path: Path) -> None:
    """But floats undo it, and their values are those of the blocks."""
    source = DATA / "tiny-dense" / "gguf" / "tiny-dense-Q4_K_M.gguf"
    up, down, floats = (tmp_path / f"{name}.gguf" for name in ("up", "down", "floats"))
    assert quantise(source, up, "Q8_0").kept > 50
    assert quantise(source, down, "Q3_K").kept == 14  # the head, and what is never quantised here
    quantise(source, floats, "F32")
    original = {tensor.name: tensor for tensor in gguf.GGUFReader(source).tensors}
    for tensor in gguf.GGUFReader(up).tensors:
        np.testing.assert_array_equal(tensor.data, original[tensor.name].data)
    for tensor in gguf.GGUFReader(floats).tensors:
        known = original[tensor.name]
        np.testing.assert_array_equal(tensor.data, gguf.quants.dequantize(known.data, known.tensor_type), tensor.name)
    assert read(down).tensors["blk.1.ffn_up.weight"].format == "Q3_K"


def test_metadata_of_a_gguf_source_is_taken_over(tmp_path: Path) -> None:
    source = build_gguf.write_gguf(
        tmp_path / "source.gguf",
        build_gguf.metadata(general__author="someone", general__file_type=7, own__list=[1.5, 2.5]),
        build_gguf.trunk() | build_gguf.mtp(),
    )
    quantise(source, tmp_path / "out.gguf", "Q8_0")
    before, after = read(source).metadata, read(tmp_path / "out.gguf").metadata
    assert after["general.file_type"] == 7
    for key, value in before.items():
        assert plain(after[key]) == plain(value), key
    assert set(after) - set(before) == {"general.quantization_version", "qwen35.attention.recurrent_layers"}


def test_a_gguf_whose_announced_mtp_block_is_missing(tmp_path: Path) -> None:
    """The result no longer announces it: llama.cpp refuses to load what is announced and absent."""
    source = build_gguf.write_gguf(tmp_path / "source.gguf", build_gguf.metadata(), build_gguf.trunk())
    written = quantise(source, tmp_path / "out.gguf", "BF16")
    metadata = read(tmp_path / "out.gguf").metadata
    assert metadata["qwen35.block_count"] == build.LAYERS
    assert "qwen35.nextn_predict_layers" not in metadata
    assert "MTP" in written.notes[0]


@pytest.mark.parametrize("per_expert", [False, True])
def test_experts_are_stacked(tmp_path: Path, per_expert: bool) -> None:
    values = {}
    rng = np.random.default_rng(0)
    tensors = build.trunk(moe=True, per_expert=per_expert) | build.mtp(moe=True, per_expert=per_expert)
    for name, (dtype, shape) in tensors.items():
        if ".experts." in name:
            assert dtype == "BF16"
            values[name] = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    folder = tmp_path / "model"
    build.write_folder(folder, build.config(moe=True), tensors)
    build.write_safetensors(folder / "model.safetensors", tensors, values=values)
    shutil.copy(DATA / "tiny-dense" / "tokenizer.json", folder)
    with pytest.raises(CheckpointError, match=r"is not a byte-level BPE tokenizer: .* but there are 300 rows"):
        quantise(folder, tmp_path / "out.gguf", "BF16")
    (folder / "tokenizer.json").write_text('{"model": {"vocab": {"a": 0}, "merges": []}, "added_tokens": []}')
    quantise(folder, tmp_path / "out.gguf", "BF16")
    written = {tensor.name: tensor.data.view(np.uint16) for tensor in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    for block, at in ((2, "model.language_model.layers.2.mlp.experts"), (4, "mtp.layers.0.mlp.experts")):
        for expert in range(build.EXPERTS):
            if per_expert:
                gate, up, down = (values[f"{at}.{expert}.{x}_proj.weight"] for x in ("gate", "up", "down"))
            else:
                gate, up = np.split(values[f"{at}.gate_up_proj"][expert], 2)
                down = values[f"{at}.down_proj"][expert]
            for part, known in (("gate", gate), ("up", up), ("down", down)):
                np.testing.assert_array_equal(written[f"blk.{block}.ffn_{part}_exps.weight"][expert], known)


def test_nothing_is_left_of_a_cancelled_run_and_the_source_is_only_read(tmp_path: Path) -> None:
    before = digests(DATA / "tiny-dense")
    cancel, shares = CancelToken(), []

    def progress(done: int, total: int) -> None:
        shares.append(done / total)
        if len(shares) == 20:
            cancel.cancel()

    with pytest.raises(Cancelled):
        quantise(DATA / "tiny-dense", tmp_path / "out.gguf", "Q4_K", progress=progress, cancel=cancel)
    assert list(tmp_path.iterdir()) == []
    assert 0 < shares[0] < shares[-1] < 1
    shares.clear()
    quantise(
        DATA / "tiny-dense", tmp_path / "out.gguf", "Q4_K", progress=lambda done, total: shares.append(done / total)
    )
    assert shares == sorted(shares)
    assert shares[-1] > 0.9
    assert [path.name for path in tmp_path.iterdir()] == ["out.gguf"]
    assert digests(DATA / "tiny-dense") == before


def test_pieces_of_any_size_give_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quantise(DATA / "tiny-moe", tmp_path / "one.gguf", "Q4_K")
    monkeypatch.setattr(rows, "_CHUNK", 50 * 256)
    quantise(DATA / "tiny-moe", tmp_path / "two.gguf", "Q4_K")
    assert (tmp_path / "one.gguf").read_bytes() == (tmp_path / "two.gguf").read_bytes()


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(atomic.shutil, "disk_usage", lambda _: usage(1 << 30, 1 << 30, 5_000_000))
    with pytest.raises(WriteError, match=r"out.gguf needs 0.02 GB, but the disk of .* has 0.01 GB free; make room"):
        quantise(DATA / "tiny-dense", tmp_path / "out.gguf", "F32")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_source: object, _target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(WriteError, match=r"out.gguf cannot be written: No space left on device"):
        quantise(DATA / "tiny-dense", tmp_path / "out.gguf", "Q8_0")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    shutil.copy(DATA / "tiny-dense" / "gguf" / "tiny-dense-Q8_0.gguf", source)
    (tmp_path / "link.gguf").symlink_to(source)
    (tmp_path / "other.gguf").write_bytes(b"precious")
    for target, kind, message in (
        ("model.gguf", "Q4_0", r"model.gguf is the model that is read"),
        ("link.gguf", "Q4_0", r"link.gguf is the model that is read"),
        ("other.gguf", "Q4_0", r"other.gguf is there already; choose another name, or replace it with --overwrite"),
        ("nowhere/out.gguf", "Q4_0", r"There is no folder .*nowhere to write out.gguf into"),
        (".", "Q4_0", r"must end in .gguf"),
        ("out.safetensors", "Q4_0", r"out.safetensors must end in .gguf"),
        ("out.gguf", "IQ1_S", r"The type IQ1_S cannot be written; choose one of F32, F16"),
    ):
        for overwrite in (False, True) if "already" not in message else (False,):
            with pytest.raises(OptionError, match=message):
                quantise(source, tmp_path / target, kind, overwrite=overwrite)
    assert (tmp_path / "other.gguf").read_bytes() == b"precious"
    quantise(source, tmp_path / "other.gguf", "Q4_0", overwrite=True)
    assert open_checkpoint(tmp_path / "other.gguf").has("mtp.fc.weight")


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    tensors = build.trunk() | build.mtp()
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    bad = np.zeros(tensors[name][1], np.uint16)
    bad[3, 5] = 0x7FC0
    folder = build.write_folder(tmp_path / "model", build.config(), tensors)
    build.write_safetensors(folder / "model.safetensors", tensors, values={name: bad})
    (folder / "tokenizer.json").write_text('{"model": {"vocab": {"a": 0}, "merges": []}}')
    with pytest.raises(CheckpointError, match=r"up_proj.weight in model.safetensors holds a number that is not finite"):
        quantise(folder, tmp_path / "out.gguf", "Q8_0")
    assert not (tmp_path / "out.gguf").exists()


def test_without_a_tokenizer(tmp_path: Path) -> None:
    folder = build.dense_folder(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no tokenizer.json. A GGUF file needs it"):
        quantise(folder, tmp_path / "out.gguf", "Q8_0")
