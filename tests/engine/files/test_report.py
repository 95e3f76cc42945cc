"""`describe`: facts from headers alone, all problems at once, never an exception."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from engine.demo import demo_path, demo_sidecar_path
from engine.files.bounded import FileReader
from engine.files.report import companion_problem, describe
from tests.engine.files import build, build_gguf
from tests.engine.files.build import Tensors, config, dense_folder, mtp, trunk, write_folder, write_safetensors


def test_facts_of_a_dense_model(data: Path) -> None:
    report = describe(data / "tiny-dense")
    assert (report.kind, report.container, report.architecture, report.usable) == (
        "model",
        "safetensors",
        "qwen3_5",
        True,
    )
    assert (report.parameters, report.weight_bytes) == (4_553_008, 9_106_016)
    assert (report.linear_layers, report.full_layers, report.hidden_size) == (6, 2, 256)
    assert (report.vocabulary, report.context, report.tied, report.mtp) == (1024, 4096, True, "inside")
    assert report.tokenizer == "tokenizer.json"
    assert report.chat_template
    assert len(report.files) == 2
    assert report.memory_total >= report.memory_available > 0
    assert report.memory.startswith("Fits in memory: 8.7 MiB of weights")


def test_formats_and_units_add_up(data: Path) -> None:
    for path in (data / "tiny-dense", data / "tiny-moe", data / "tiny-moe" / "gguf" / "tiny-moe-Q4_K_M.gguf"):
        report = describe(path)
        assert sum(use.nbytes for use in report.formats) == report.weight_bytes
        assert sum(use.parameters for use in report.formats) == report.parameters
        units = {unit.name: unit.nbytes + unit.expert_bytes for unit in report.units}
        extra = units["embedding"] if report.tied else 0
        assert sum(units.values()) - extra == report.weight_bytes
        assert [name for name in units if name.startswith("layers.")] == [
            f"layers.{index}" for index in range(report.linear_layers + report.full_layers)
        ]
        assert "mtp" in units


def test_a_mixture_of_experts_counts_its_experts_apart(data: Path) -> None:
    report = describe(data / "tiny-moe")
    assert (report.experts, report.experts_per_token) == (8, 2)
    (layer,) = (unit for unit in report.units if unit.name == "layers.2")
    assert layer.expert_bytes == 8 * 3 * 64 * 256 * 2


def test_it_is_plain_json(data: Path) -> None:
    for path in (data / "tiny-dense", data / "nowhere"):
        answer = json.loads(json.dumps(describe(path).to_dict()))
        assert answer["usable"] is (path.name == "tiny-dense")


def test_the_file_of_an_mtp_layer_apart(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk())
    assert describe(folder).mtp == "none"
    write_safetensors(folder / "mtp.safetensors", mtp())
    assert describe(folder).mtp == "mtp.safetensors"


def test_all_problems_of_a_broken_model(tmp_path: Path) -> None:
    def damage(tensors: Tensors) -> None:
        del tensors["model.language_model.norm.weight"]
        tensors["mtp.norm.weight"] = ("BF16", (3,))

    report = describe(dense_folder(tmp_path / "m", damage))
    assert report.kind == "model"
    assert not report.usable
    assert report.problems == (
        "Tensor norm.weight is missing from m.",
        "Tensor mtp.norm.weight in model.safetensors has shape [3]; [256] was expected.",
    )
    assert report.parameters > 0


def test_unknown_types_are_listed_and_named(tmp_path: Path) -> None:
    tensors = build_gguf.trunk() | build_gguf.mtp() | {"blk.0.ffn_up.weight": (40, (512, 256))}
    report = describe(build_gguf.write_gguf(tmp_path / "x.gguf", build_gguf.metadata(), tensors))
    assert "GGML_40" in {use.format for use in report.formats}
    assert "type 40: blk.0.ffn_up.weight" in report.problems[0]
    assert report.tokenizer == "qwen35 in the metadata, 300 tokens"


def test_sidecars_and_vision_towers_are_recognised(tmp_path: Path) -> None:
    sidecars = (
        write_safetensors(tmp_path / "s.safetensors", mtp()),
        write_safetensors(dense_folder(tmp_path / "m") / "mtp-sidecar.safetensors", mtp()),
        build_gguf.write_gguf(tmp_path / "mtp-x.gguf", build_gguf.metadata(), build_gguf.mtp()),
    )
    for path in sidecars:
        report = describe(path)
        assert (report.kind, report.usable, report.mtp, report.problems) == ("sidecar", True, "inside", ())
        assert report.parameters == sum(build.math.prod(shape) for _, shape in mtp().values())
    tower = describe(build_gguf.write_gguf(tmp_path / "mmproj-x.gguf", {"general.architecture": "clip"}, {}))
    assert (tower.kind, tower.usable) == ("vision tower", False)
    assert tower.problems[0].startswith("mmproj-x.gguf is a vision tower (mmproj), not a language model")


def test_a_truncated_sidecar(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "s.safetensors", mtp())
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    report = describe(path)
    assert (report.kind, report.usable) == ("sidecar", False)
    assert report.problems == ("s.safetensors is truncated: 3 bytes are missing; get the file again.",)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"\0" * 100, b"{}"])
@pytest.mark.parametrize("name", ["x.gguf", "x.safetensors", "x.bin"])
def test_rubbish_is_unusable_with_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    report = describe(tmp_path / name)
    assert report.kind == "unusable"
    assert len(report.problems) == 1


LARGE = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 64,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024,
    "vocab_size": 248320,
}


@pytest.fixture
def large_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of the 397B mixture of experts, for the builders."""
    sizes = {"HIDDEN": 4096, "VOCABULARY": 248320, "HEADS": 32, "KV_HEADS": 2, "HEAD_DIM": 256, "EXPERTS": 512}
    sizes |= {"LINEAR_V_HEADS": 64, "LINEAR_DIM": 128, "EXPERT_INNER": 1024, "SHARED_INNER": 1024}
    sizes |= {"V_SIZE": 64 * 128, "CHANNELS": 2 * 16 * 128 + 64 * 128}
    for name, value in sizes.items():
        monkeypatch.setattr(build, name, value)


@pytest.mark.skipif(sys.platform == "win32", reason="sparse files take room there")
@pytest.mark.usefixtures("large_sizes")
@pytest.mark.parametrize(("layers", "per_expert"), [(60, False), (8, True)])
def test_only_headers_of_an_806_gb_checkpoint_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: int, per_expert: bool
) -> None:
    tensors = trunk(True, kinds="lllf" * (layers // 4), per_expert=per_expert) | mtp(True)
    settings = config(True, **LARGE | {"num_hidden_layers": layers, "layer_types": None})
    folder = write_folder(tmp_path / "397B", settings, tensors, shards=8)
    headers = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            headers += 8 + int.from_bytes(file.read(8), "little")
    tables = sum(path.stat().st_size for path in folder.glob("*.json"))
    tables += (folder / "config.json").stat().st_size  # once more for the vision tower
    count = 0
    read = FileReader.read

    def counted(self: FileReader, offset: int, size: int) -> bytes:
        nonlocal count
        count += size
        return read(self, offset, size)

    monkeypatch.setattr(FileReader, "read", counted)
    report = describe(folder)
    assert report.problems == ()
    assert len(report.units) == layers + 3
    if layers == 60:
        assert report.parameters == pytest.approx(402.942e9, rel=1e-5)
        assert report.weight_bytes > 805e9
        assert report.memory.startswith("Larger than the free memory (750.") or report.memory_available > 800e9
    assert count <= headers + tables


def test_a_sidecar_beside_an_indexed_checkpoint_is_itself_and_is_held_against_it(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(data / "tiny-dense", folder, ignore=shutil.ignore_patterns("gguf", "*.npz"))
    sidecar = shutil.copy(demo_sidecar_path(), folder / "mtp-demo.safetensors")
    report = describe(sidecar)
    assert (report.kind, report.path) == ("sidecar", str(sidecar))
    assert "mtp-demo.safetensors" in companion_problem(folder, report)
    assert companion_problem(demo_path(), report) == ""
