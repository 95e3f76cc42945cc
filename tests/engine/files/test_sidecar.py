"""Sidecars of every kind, and the sentences for those that do not fit. Rows O-16 to O-18 of the contract."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.errors import SidecarError
from engine.files.checkpoint import open_checkpoint
from engine.files.config import ModelConfig
from engine.files.config_json import config_from_json
from engine.files.conventions import GGUF, MLX, PUBLISHED
from engine.files.sidecar import open_sidecar
from tests.engine.files import build, build_gguf
from tests.engine.files.build import HIDDEN, VOCABULARY, Tensors, config, mtp, trunk, write_folder, write_safetensors

CONFIG = config_from_json(config())
MOE = config_from_json(config(moe=True))
NAMES = set(mtp())


def head(rows: int, dtype: str = "I32") -> Tensors:
    return {"lm_head.weight": ("BF16", (rows, HIDDEN)), "mtp.d2t": (dtype, (rows,))}


def sidecar(path: Path, extra: Tensors | None = None, ids: np.ndarray | None = None, **options: object) -> Path:
    values = None if ids is None else {"mtp.d2t": ids}
    return write_safetensors(path, mtp() | (extra or {}), values=values, **options)  # type: ignore[arg-type]


def test_the_mtp_layer_alone(tmp_path: Path) -> None:
    found = open_sidecar(sidecar(tmp_path / "s.safetensors"), CONFIG)
    assert set(found.tensors) == NAMES
    assert found.draft_ids is None
    assert found.conventions == PUBLISHED
    assert found.note == ""
    assert found.spec("mtp.fc.weight").shape == (256, 512)
    with pytest.raises(SidecarError, match=r"Tensor mtp.lm_head.weight is missing from s.safetensors"):
        found.spec("mtp.lm_head.weight")


@pytest.mark.parametrize("prefix", ["mtp.", "model.mtp.", "language_model.mtp.", ""])
def test_every_prefix(tmp_path: Path, prefix: str) -> None:
    path = write_safetensors(tmp_path / "s.safetensors", mtp(prefix=prefix))
    assert set(open_sidecar(path, CONFIG).tensors) == NAMES


@pytest.mark.parametrize("dtype", ["I32", "I64"])
def test_a_trimmed_head_with_its_token_ids(tmp_path: Path, dtype: str) -> None:
    """llama.cpp#29143: a head of other height than the vocabulary is no fault."""
    ids = np.array([299, 0, 7, 100], "<i4" if dtype == "I32" else "<i8")
    found = open_sidecar(sidecar(tmp_path / "s.safetensors", head(4, dtype), ids), CONFIG)
    assert found.draft_ids is not None
    assert found.draft_ids.tolist() == [299, 0, 7, 100]
    assert found.spec("mtp.lm_head.weight").shape == (4, HIDDEN)
    assert "mtp.d2t" not in found.tensors
    assert found.note == "Drafts come from a trimmed head of 4 of 300 tokens."


def test_offsets_as_eagle_writes_them(tmp_path: Path) -> None:
    found = open_sidecar(sidecar(tmp_path / "s.safetensors", head(4, "I64"), np.array([0, 0, 50, 50])), CONFIG)
    assert found.draft_ids is not None
    assert found.draft_ids.tolist() == [0, 1, 52, 53]


def test_a_whole_head_needs_no_ids(tmp_path: Path) -> None:
    own: Tensors = {
        "lm_head.weight": ("BF16", (VOCABULARY, HIDDEN)),
        "embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN)),
    }
    found = open_sidecar(sidecar(tmp_path / "s.safetensors", own), CONFIG)
    assert found.draft_ids is not None
    assert found.draft_ids.tolist() == list(range(VOCABULARY))
    assert found.has("mtp.embed_tokens.weight")


def test_the_shipped_sidecar_of_the_demo() -> None:
    from importlib.resources import as_file, files

    with as_file(files("resources") / "demo") as folder:
        checkpoint = open_checkpoint(folder)
        found = open_sidecar(next(folder.glob("*sidecar*.safetensors")), checkpoint.config)
    assert found.draft_ids is not None
    assert len(found.draft_ids) == found.spec("mtp.lm_head.weight").shape[0]
    assert len(set(found.draft_ids.tolist())) == len(found.draft_ids)


@pytest.mark.parametrize("prefix", ["mtp.", ""])
@pytest.mark.parametrize("own_head", [False, True])
def test_mlx_exports_have_shifted_norms(tmp_path: Path, prefix: str, own_head: bool) -> None:
    tensors = mtp(prefix=prefix) | ({"lm_head.weight": ("BF16", (VOCABULARY, HIDDEN))} if own_head else {})
    path = write_safetensors(tmp_path / "s.safetensors", tensors, metadata={"format": "mlx"})
    assert open_sidecar(path, CONFIG).conventions == MLX


class TestDoesNotFit:
    def refused(self, path: Path, message: str, config: ModelConfig = CONFIG) -> None:
        with pytest.raises(SidecarError, match=message):
            open_sidecar(path, config)

    def test_another_hidden_size(self, tmp_path: Path) -> None:
        tensors = {name: (dtype, tuple(size // 2 for size in shape)) for name, (dtype, shape) in mtp().items()}
        path = write_safetensors(tmp_path / "s.safetensors", tensors)
        self.refused(
            path, r"s.safetensors belongs to another model: the sidecar's hidden size is 128, the model's 256\.$"
        )

    def test_ids_outside_the_vocabulary(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", head(4), np.array([1, 2, 300, 3], "<i4"))
        self.refused(path, r"mtp.d2t in s.safetensors is damaged: row 2 names token 300, outside the vocabulary of 300")

    def test_an_id_twice(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", head(4), np.array([9, 2, 9, 3], "<i4"))
        self.refused(path, r"mtp.d2t in s.safetensors is damaged: rows 0 and 2 both name token 9")

    def test_no_ids(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"lm_head.weight": ("BF16", (4, HIDDEN))})
        self.refused(path, "has a head of 4 rows for a vocabulary of 300, but no d2t")

    def test_ids_without_a_head(self, tmp_path: Path) -> None:
        self.refused(
            sidecar(tmp_path / "s.safetensors", {"d2t": ("I32", (4,))}), r"for a trimmed head \(d2t\), but no head"
        )

    def test_empty_ids(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"lm_head.weight": ("BF16", (4, HIDDEN)), "d2t": ("I32", (0,))})
        self.refused(path, "d2t in s.safetensors is empty")

    @pytest.mark.parametrize("shape", [(4, HIDDEN + 1), (0, HIDDEN), (VOCABULARY + 1, HIDDEN), (HIDDEN,), (HIDDEN, 4)])
    def test_a_head_of_another_shape(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        extra: Tensors = {"lm_head.weight": ("BF16", shape), "d2t": ("I32", (4,))}
        message = r"Tensor lm_head.weight in s.safetensors has shape \[.*\]; \[n, 256\] with n up to 300 was expected"
        self.refused(sidecar(tmp_path / "s.safetensors", extra), message)

    def test_an_embedding_of_another_shape(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"embed_tokens.weight": ("BF16", (5, HIDDEN))})
        self.refused(path, r"embed_tokens.weight in s.safetensors has shape \[5, 256\]; \[300, 256\] was expected")

    def test_fc_of_another_shape(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"mtp.fc.weight": ("BF16", (256, 256))})
        self.refused(path, r"Tensor mtp.fc.weight in s.safetensors has shape \[256, 256\]; \[256, 512\] was expected")

    def test_no_mtp_layer(self, tmp_path: Path) -> None:
        path = write_safetensors(tmp_path / "s.safetensors", trunk())
        self.refused(path, r"s.safetensors is no sidecar: it has no MTP layer \(mtp.fc.weight is missing\)")

    def test_missing_tensors_are_named(self, tmp_path: Path) -> None:
        for missing in NAMES - {"mtp.fc.weight"}:
            path = write_safetensors(tmp_path / "s.safetensors", {k: v for k, v in mtp().items() if k != missing})
            self.refused(path, f"Tensor {missing} is missing from s.safetensors")

    def test_surplus_tensors_are_named(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"mtp.layers.0.self_attn.q_proj.bias": ("BF16", (512,))})
        self.refused(path, "has 1 tensors that an MTP layer does not have: mtp.layers.0.self_attn.q_proj.bias")

    def test_two_layers(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors", {"mtp.layers.1.self_attn.q_proj.weight": ("BF16", (512, 256))})
        self.refused(path, r"s.safetensors has 2 MTP layers; Draftscope runs one")

    def test_a_dense_layer_for_a_mixture_of_experts(self, tmp_path: Path) -> None:
        self.refused(
            sidecar(tmp_path / "s.safetensors"),
            "tensors are missing from s.safetensors: mtp.layers.0.mlp.gate.weight",
            MOE,
        )

    def test_truncated(self, tmp_path: Path) -> None:
        path = sidecar(tmp_path / "s.safetensors")
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 10)
        self.refused(path, r"s.safetensors is truncated: 10 bytes are missing")

    def test_no_file_or_another(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "s", "There is no sidecar")
        (tmp_path / "s.txt").write_text("x")
        self.refused(tmp_path / "s.txt", r"s.txt is no sidecar: choose a .safetensors or .gguf file")
        self.refused(tmp_path, "no .safetensors file")


def test_a_mixture_of_experts_packed_and_apart(tmp_path: Path) -> None:
    for per_expert in (True, False):
        path = write_safetensors(tmp_path / "s.safetensors", mtp(True, per_expert=per_expert))
        found = open_sidecar(path, MOE)
        assert found.experts("mtp.layers.0").packed is not per_expert
        assert found.experts("mtp.layers.0").expert(3)["down_proj"].shape == (256, 256)


class TestFromWholeCheckpoints:
    """A sidecar may also be a whole checkpoint: then its trunk's embedding and head are not the MTP layer's."""

    def test_one_file(self, tmp_path: Path) -> None:
        path = write_safetensors(tmp_path / "s.safetensors", trunk(True) | mtp())
        assert set(open_sidecar(path, CONFIG).tensors) == NAMES

    def test_a_folder(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=3)
        assert set(open_sidecar(folder, CONFIG).tensors) == NAMES

    def test_an_mlx_export(self, tmp_path: Path) -> None:
        tensors = trunk() | mtp()
        for name, (dtype, shape) in list(tensors.items()):
            if name.endswith("conv1d.weight"):
                tensors[name] = (dtype, (shape[0], shape[2], 1))
        path = write_safetensors(tmp_path / "s.safetensors", tensors)
        assert open_sidecar(path, CONFIG).conventions == MLX

    def test_a_published_mtp_file_in_the_folder_of_an_mlx_export(self, tmp_path: Path) -> None:
        tensors = trunk()
        for name, (dtype, shape) in list(tensors.items()):
            if name.endswith("conv1d.weight"):
                tensors[name] = (dtype, (shape[0], shape[2], 1))
        folder = write_folder(tmp_path / "m", config(), tensors)
        write_safetensors(folder / "mtp.safetensors", mtp(), {"format": "pt"})
        assert open_sidecar(folder, CONFIG).conventions == PUBLISHED

    def test_plain_mtp_layers_of_checkpoints_that_are_quantised_otherwise(self, tmp_path: Path) -> None:
        at = "model.layers.0.mlp.up_proj."
        packed: Tensors = {
            at + "weight": ("F4", (64,)),
            at + "weight_scale": ("F8_E4M3", (2, 4)),
            at + "weight_scale_2": ("F32", ()),
        }
        tensors = trunk(prefix="model.") | mtp() | packed
        header, size = build.header_of(tensors)
        path = tmp_path / "s.safetensors"
        path.write_bytes(build.safetensors_bytes(header, b"\0" * size))
        assert set(open_sidecar(path, CONFIG).tensors) == NAMES

    def test_gguf(self, tmp_path: Path) -> None:
        found = open_sidecar(build_gguf.dense(tmp_path / "x.gguf"), CONFIG)
        assert set(found.tensors) == NAMES
        assert found.conventions == GGUF


FAST: build_gguf.Tensors = {
    "output.weight": (build_gguf.F16, (64, HIDDEN)),
    "token_embd.weight": (build_gguf.Q8_0, (VOCABULARY, HIDDEN)),
    "output_norm.weight": (build_gguf.F32, (HIDDEN,)),
    "d2t": (build_gguf.I32, (64,)),
}


class TestGguf:
    def fast(self, path: Path, ids: np.ndarray, **changed: object) -> Path:
        tensors = build_gguf.mtp() | FAST | changed  # type: ignore[operator]
        return build_gguf.write_gguf(path, build_gguf.metadata(), tensors, {"d2t": ids})

    def test_an_mtp_layer_alone(self, tmp_path: Path) -> None:
        found = open_sidecar(
            build_gguf.write_gguf(tmp_path / "mtp-x.gguf", build_gguf.metadata(), build_gguf.mtp()), CONFIG
        )
        assert set(found.tensors) == NAMES
        assert found.conventions == GGUF

    def test_the_fastmtp_form(self, tmp_path: Path) -> None:
        """19 tensors: the layer's 15, output.weight [H, n] in ggml's order, token_embd, output_norm, absolute d2t."""
        ids = np.arange(64, dtype="<i4")[::-1] * 4
        path = self.fast(tmp_path / "fast.gguf", ids)
        found = open_sidecar(path, CONFIG)
        assert set(found.tensors) == NAMES | {"mtp.lm_head.weight", "mtp.embed_tokens.weight"}
        assert found.spec("mtp.lm_head.weight").shape == (64, HIDDEN)
        assert found.draft_ids is not None
        assert found.draft_ids.tolist() == ids.tolist()

    def test_its_norm_falls_back_to_output_norm(self, tmp_path: Path) -> None:
        tensors = build_gguf.mtp() | FAST
        del tensors["blk.4.nextn.shared_head_norm.weight"]
        ids = {"d2t": np.arange(64, dtype="<i4")}
        path = build_gguf.write_gguf(tmp_path / "fast.gguf", build_gguf.metadata(), tensors, ids)
        assert open_sidecar(path, CONFIG).spec("mtp.norm.weight").file_name == "output_norm.weight"

    def test_repeated_ids_are_no_offsets_here(self, tmp_path: Path) -> None:
        path = self.fast(tmp_path / "fast.gguf", np.zeros(64, "<i4"))
        with pytest.raises(SidecarError, match=r"d2t in fast.gguf is damaged: rows 0 and 1 both name token 0"):
            open_sidecar(path, CONFIG)

    def test_wide_ids(self, tmp_path: Path) -> None:
        path = self.fast(tmp_path / "fast.gguf", np.arange(64, dtype="<i8"), d2t=(build_gguf.I64, (64,)))
        assert open_sidecar(path, CONFIG).draft_ids is not None

    def test_what_is_no_sidecar(self, tmp_path: Path) -> None:
        cases = (
            ({"general.architecture": "clip"}, {}, "is no sidecar but a vision tower"),
            (build_gguf.metadata(general__type="adapter"), {}, "is no sidecar but an adapter"),
            (build_gguf.metadata(), build_gguf.trunk(), "has no MTP layer"),
        )
        for table, tensors, message in cases:
            with pytest.raises(SidecarError, match=message):
                open_sidecar(build_gguf.write_gguf(tmp_path / "x.gguf", table, tensors), CONFIG)


def test_an_index_that_leaves_the_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config(), trunk() | mtp(), shards=2)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"mtp.fc.weight": "../x.safetensors"}})
    )
    with pytest.raises(SidecarError, match="which is no file of its folder"):
        open_sidecar(folder, CONFIG)
