"""Published folders: which files count, how names are read, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import safetensors

from engine.errors import CheckpointError, UnsupportedError
from engine.files.checkpoint import open_checkpoint
from tests.engine.files import build
from tests.engine.files.build import Tensors, config, dense_folder, mtp, trunk, write_folder, write_safetensors


def test_o14_every_tensor_of_the_reference_checkpoints_is_found(data: Path) -> None:
    for name in ("tiny-dense", "tiny-moe"):
        checkpoint = open_checkpoint(data / name)
        assert checkpoint.kind == "safetensors"
        assert checkpoint.name == name
        stored = {}
        for path in checkpoint.files:
            with safetensors.safe_open(path, "np") as file:
                stored |= {key: (file.get_slice(key).get_shape(), path) for key in file.keys()}  # noqa: SIM118 - no mapping
        found = {spec.file_name: (list(spec.shape), spec.file) for spec in checkpoint.tensors.values()}
        assert found == {key: item for key, item in stored.items() if not key.startswith("model.visual.")}


def test_names_with_and_without_the_multimodal_wrapper(tmp_path: Path) -> None:
    names = []
    for number, prefix in enumerate(("model.language_model.", "model.", "language_model.model.", "")):
        tensors = trunk(prefix=prefix) | mtp()
        names.append(set(open_checkpoint(write_folder(tmp_path / str(number), config(), tensors)).tensors))
    assert names[0] == names[1] == names[2] == names[3]
    assert "layers.0.linear_attn.A_log" in names[0]


@pytest.mark.parametrize("prefix", ["mtp.", "model.mtp.", "language_model.mtp.", "model.language_model.mtp."])
def test_mtp_under_every_prefix(tmp_path: Path, prefix: str) -> None:
    """Row O-16 of the contract."""
    checkpoint = open_checkpoint(write_folder(tmp_path / "m", config(), trunk() | mtp(prefix=prefix)))
    assert checkpoint.config.mtp_layers == 1
    assert checkpoint.spec("mtp.layers.0.self_attn.q_proj.weight").shape == (512, 256)


def test_the_vision_tower_is_ignored(tmp_path: Path) -> None:
    extra: Tensors = {
        "model.visual.blocks.0.attn.qkv.weight": ("BF16", (6, 2)),
        "visual.merger.norm.weight": ("F32", (3,)),
    }
    checkpoint = open_checkpoint(write_folder(tmp_path / "m", config(), trunk() | mtp() | extra))
    assert not any("visual" in name for name in checkpoint.tensors)


def test_shards_with_and_without_an_index(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=3)
    with_index = open_checkpoint(folder)
    (folder / "model.safetensors.index.json").unlink()
    without = open_checkpoint(folder)
    assert with_index.tensors == without.tensors
    assert len(without.files) == 3


def test_a_shard_or_a_settings_file_stands_for_its_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    whole = open_checkpoint(folder)
    for name in ("model-00002-of-00002.safetensors", "config.json", "model.safetensors.index.json"):
        assert open_checkpoint(folder / name).tensors == whole.tensors


def test_a_single_file_beside_its_config(tmp_path: Path) -> None:
    folder = dense_folder(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    write_safetensors(folder / "unrelated.safetensors", {"x": ("F32", (1,))})
    assert open_checkpoint(folder / "other.safetensors").name == "other"
    with pytest.raises(CheckpointError, match=r"no model.safetensors.index.json that says which of its files to use"):
        open_checkpoint(folder)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"There is no file or folder .*nowhere"):
        open_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"There is no file or folder"):
        open_checkpoint("\0")
    with pytest.raises(CheckpointError, match=r"cannot be opened: File name too long"):
        open_checkpoint("x" * 5000)


def test_the_folder_one_stands_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(CheckpointError, match=r"^here has no config.json"):
        open_checkpoint(".")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_hugging_face_cache_of_links(tmp_path: Path) -> None:
    model = tmp_path / "models--Qwen--Qwen3.5-4B"
    snapshot = model / "snapshots" / "0123abc"
    dense_folder(snapshot)
    (model / "blobs").mkdir()
    for number, path in enumerate(sorted(snapshot.iterdir())):
        path.symlink_to(path.rename(model / "blobs" / str(number)))
    assert open_checkpoint(snapshot).name == "Qwen3.5-4B"
    assert open_checkpoint(snapshot / "model.safetensors").name == "model"


def test_no_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no config.json; choose the folder of a model"):
        open_checkpoint(tmp_path)
    (tmp_path / "a.gguf").touch()
    with pytest.raises(CheckpointError, match=r"has no config.json, but GGUF files \(a.gguf\); choose one of them"):
        open_checkpoint(tmp_path)


def test_no_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config()))
    with pytest.raises(CheckpointError, match=r"has a config.json but no .safetensors file"):
        open_checkpoint(tmp_path)


def test_files_that_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(CheckpointError, match=r"x.txt is no model: choose a folder"):
        open_checkpoint(tmp_path / "x.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(CheckpointError, match=r"is neither a file nor a folder"):
        open_checkpoint(tmp_path / "pipe.gguf")


def test_every_truncated_shard_is_named_with_its_missing_bytes(tmp_path: Path) -> None:
    """osaurus-ai/vmlx-swift#217: all lengths are checked before the first load."""
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=3)
    for number, missing in ((1, 7), (3, 1000)):
        path = folder / f"model-{number:05d}-of-00003.safetensors"
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - missing)
    problems: list[str] = []
    open_checkpoint(folder, problems)
    assert problems == [
        "model-00001-of-00003.safetensors is truncated: 7 bytes are missing; get the file again.",
        "model-00003-of-00003.safetensors is truncated: 1,000 bytes are missing; get the file again.",
    ]
    with pytest.raises(
        CheckpointError, match=r"00001-of-00003.safetensors is truncated: 7 bytes .* \(and 1 more problem"
    ):
        open_checkpoint(folder)


def test_missing_shards_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(
        CheckpointError, match=r"model-00002-of-00003.safetensors, which model.safetensors.index.json names"
    ):
        open_checkpoint(folder)
    (folder / "model.safetensors.index.json").unlink()
    with pytest.raises(CheckpointError, match=r"1 of 3 shards are missing from m: model-00002-of-00003.safetensors"):
        open_checkpoint(folder)


def test_one_unreadable_shard_does_not_drown_in_missing_tensors(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"\0" * 4)
    problems: list[str] = []
    open_checkpoint(folder, problems)
    assert len(problems) == 1
    assert problems[0].startswith("model-00001-of-00002.safetensors is incomplete")


@pytest.mark.parametrize(
    "name",
    [
        "../x.safetensors",
        "/etc/x.safetensors",
        "a/../../x.safetensors",
        "C:\\x.safetensors",
        "..\\x.safetensors",
        "",
        3,
        "x",
    ],
)
def test_index_paths_that_leave_the_folder(tmp_path: Path, name: object) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    index = folder / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    table["weight_map"]["model.language_model.norm.weight"] = name
    index.write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match=r"which is no file of its folder"):
        open_checkpoint(folder)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_without_a_table(tmp_path: Path, content: str) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"has no weight_map"):
        open_checkpoint(folder)


def test_an_index_that_promises_more_than_the_shards_hold(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    index = folder / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    table["weight_map"]["model.extra"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match=r"The index names 1 tensors that no shard holds: model.extra"):
        open_checkpoint(folder)


def test_the_same_tensor_twice(tmp_path: Path) -> None:
    double = {"model.norm.weight": ("BF16", (build.HIDDEN,))}
    with pytest.raises(CheckpointError, match=r"norm.weight in model.safetensors are the same tensor; keep one"):
        open_checkpoint(write_folder(tmp_path / "m", config(), trunk() | mtp() | double))


def test_wrong_shapes_are_named_with_what_was_expected(tmp_path: Path) -> None:
    """Row L-04 of the contract: q_proj is twice as high as its heads."""
    name = "model.language_model.layers.3.self_attn.q_proj.weight"
    folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({name: ("BF16", (256, 256))}))
    message = rf"Tensor {name} in model.safetensors has shape \[256, 256\]; \[512, 256\] was expected"
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(folder)


def test_each_single_missing_tensor_is_an_error(tmp_path: Path) -> None:
    """sgl-project/sglang#18024: what is missing is never filled in."""
    for number, missing in enumerate(trunk() | mtp()):
        folder = dense_folder(tmp_path / str(number), lambda tensors, missing=missing: tensors.pop(missing))
        canonical = missing.removeprefix("model.language_model.")
        with pytest.raises(CheckpointError, match=f"Tensor {canonical} is missing from {number}"):
            open_checkpoint(folder)


def test_all_problems_at_once(tmp_path: Path) -> None:
    def damage(tensors: Tensors) -> None:
        tensors["model.language_model.norm.weight"] = ("BF16", (3,))
        del tensors["model.language_model.layers.0.input_layernorm.weight"]
        del tensors["model.language_model.layers.1.input_layernorm.weight"]
        tensors["model.language_model.layers.0.self_attn.q_proj.bias"] = ("BF16", (512,))
        tensors["model.language_model.layers.2.mlp.up_proj.weight"] = ("I64", (512, 256))

    problems: list[str] = []
    open_checkpoint(dense_folder(tmp_path / "m", damage), problems)
    assert len(problems) == 4
    assert problems[0].startswith("Tensor model.language_model.norm.weight in model.safetensors has shape [3]")
    assert problems[1].startswith("2 tensors are missing from m: layers.0.input_layernorm.weight, layers.1.")
    assert problems[2].endswith("cannot use there: model.language_model.layers.2.mlp.up_proj.weight (I64).")
    assert problems[3].endswith("does not know: model.language_model.layers.0.self_attn.q_proj.bias.")


def test_norms_in_integer_or_fp8_form_are_refused(tmp_path: Path) -> None:
    name = "model.language_model.norm.weight"
    folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({name: ("F8_E4M3", (build.HIDDEN,))}))
    with pytest.raises(UnsupportedError, match=r"types that Draftscope cannot use there: .*norm.weight \(F8_E4M3\)"):
        open_checkpoint(folder)


def test_tokenizer_template_and_settings(tmp_path: Path) -> None:
    folder = dense_folder(tmp_path / "m")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": [{"name": "default", "template": "T"}]}))
    (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.7, "eos_token_id": 17}))
    checkpoint = open_checkpoint(folder)
    assert checkpoint.tokenizer.json_path == folder / "tokenizer.json"
    assert checkpoint.chat_template == "T"
    assert checkpoint.generation_config["temperature"] == 0.7
    assert checkpoint.config.eos_ids == (17, 298, 299)
    (folder / "chat_template.jinja").write_text("J")
    assert open_checkpoint(folder).chat_template == "J"


def test_a_missing_tokenizer_is_said_by_its_source(tmp_path: Path) -> None:
    folder = dense_folder(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    assert open_checkpoint(folder).tokenizer.missing == "m has no tokenizer.json."


def test_damaged_side_files_are_problems(tmp_path: Path) -> None:
    folder = dense_folder(tmp_path / "m")
    for name in ("generation_config.json", "tokenizer_config.json"):
        (folder / name).write_text("{")
    (folder / "chat_template.jinja").write_bytes(b"\xff")
    problems: list[str] = []
    open_checkpoint(folder, problems)
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("suffixes", "kind"),
    [
        (("qweight", "qzeros", "scales"), "AWQ or GPTQ"),
        (("weight_packed", "weight_scale"), "compressed-tensors"),
        (("weight", "weight_scale", "weight_scale_2"), "NVFP4"),
        (("weight", "scales", "biases"), "MLX"),
    ],
)
def test_other_quantisations_are_named_even_if_the_settings_do_not(
    tmp_path: Path, suffixes: tuple[str, ...], kind: str
) -> None:
    def quantise(tensors: Tensors) -> None:
        at = "model.language_model.layers.0.mlp.up_proj."
        del tensors[at + "weight"]
        tensors.update({at + suffix: ("U8", (256, 128)) for suffix in suffixes})

    problems: list[str] = []
    open_checkpoint(dense_folder(tmp_path / "m", quantise), problems)
    assert len(problems) == 1
    assert f"m is quantised as {kind}, which Draftscope does not run: choose a bf16" in problems[0]
