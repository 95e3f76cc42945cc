"""What is decided once per checkpoint: is the head tied, is there an MTP layer, which export wrote the norms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.errors import CheckpointError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.files.conventions import MLX, PUBLISHED
from tests.engine.files import build
from tests.engine.files.build import Tensors, config, dense_folder, mtp, trunk, write_folder, write_safetensors


class TestHead:
    """kekzl/imp#1282, sgl-project/sglang#18024: the flag is read in both places, and obeyed."""

    def open(self, folder: Path, root: bool | None, text: bool | None, head: bool) -> Checkpoint:
        settings = config(tie_word_embeddings=text)
        settings["tie_word_embeddings"] = root
        settings = {key: value for key, value in settings.items() if value is not None}
        extra: Tensors = {"lm_head.weight": ("BF16", (build.VOCABULARY, build.HIDDEN))} if head else {}
        return open_checkpoint(write_folder(folder, settings, trunk() | mtp() | extra))

    @pytest.mark.parametrize(("root", "text"), [(True, None), (None, True), (True, True)])
    def test_tied(self, tmp_path: Path, root: bool | None, text: bool | None) -> None:
        checkpoint = self.open(tmp_path / "m", root, text, False)
        assert checkpoint.config.tied
        assert not checkpoint.has("lm_head.weight")

    @pytest.mark.parametrize(("root", "text"), [(False, None), (None, False), (None, None), (False, False)])
    def test_untied(self, tmp_path: Path, root: bool | None, text: bool | None) -> None:
        assert not self.open(tmp_path / "a", root, text, True).config.tied
        with pytest.raises(CheckpointError, match=r"Tensor lm_head.weight is missing from b"):
            self.open(tmp_path / "b", root, text, False)

    @pytest.mark.parametrize(("root", "text"), [(False, True), (True, False)])
    def test_the_file_decides_a_contradiction(self, tmp_path: Path, root: bool, text: bool) -> None:
        assert not self.open(tmp_path / "a", root, text, True).config.tied
        assert self.open(tmp_path / "b", root, text, False).config.tied

    def test_a_spare_head_is_not_used_and_that_is_said(self, tmp_path: Path) -> None:
        checkpoint = self.open(tmp_path / "m", True, True, True)
        assert checkpoint.config.tied
        assert not checkpoint.has("lm_head.weight")
        assert "lm_head.weight in the file is not used" in checkpoint.notes[0]


class TestMtp:
    def test_announced_but_absent(self, tmp_path: Path) -> None:
        """llama.cpp#26916: the model still loads, and says why it does not draft."""
        checkpoint = open_checkpoint(write_folder(tmp_path / "m", config(), trunk()))
        assert checkpoint.config.mtp_layers == 0
        assert checkpoint.notes == (
            "The settings of the checkpoint announce an MTP layer, but its tensors are not there. "
            "The checkpoint has no MTP layer: a sidecar can provide one, otherwise only n-gram drafts are possible.",
        )

    def test_without_its_first_matrix_it_is_incomplete(self, tmp_path: Path) -> None:
        tensors = trunk() | mtp()
        del tensors["mtp.fc.weight"]
        with pytest.raises(CheckpointError, match=r"^Tensor mtp.fc.weight is missing from m\.$"):
            open_checkpoint(write_folder(tmp_path / "m", config(), tensors))

    def test_present_but_not_announced(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "m", config(mtp_num_hidden_layers=None), trunk() | mtp())
        assert open_checkpoint(folder).config.mtp_layers == 1

    @pytest.mark.parametrize("name", ["mtp.safetensors", "mtp/weights.safetensors", "model-mtp.safetensors"])
    @pytest.mark.parametrize("shards", [1, 2])
    def test_in_a_file_of_its_own_that_the_index_does_not_name(self, tmp_path: Path, name: str, shards: int) -> None:
        folder = write_folder(tmp_path / "m", config(), trunk(), shards=shards)
        write_safetensors(folder / name, mtp())
        checkpoint = open_checkpoint(folder)
        assert checkpoint.config.mtp_layers == 1
        assert checkpoint.spec("mtp.fc.weight").file == folder / name

    def test_in_a_file_of_its_own_that_the_index_names(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "m", config(), trunk(), shards=2)
        write_safetensors(folder / "mtp" / "weights.safetensors", mtp())
        index = folder / "model.safetensors.index.json"
        table = json.loads(index.read_text())
        table["weight_map"] |= dict.fromkeys(mtp(), "mtp/weights.safetensors")
        index.write_text(json.dumps(table))
        assert open_checkpoint(folder).config.mtp_layers == 1

    def test_dedicated_embeddings(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "a", config(mtp_use_dedicated_embeddings=True), trunk() | mtp())
        with pytest.raises(CheckpointError, match=r"Tensor mtp.embed_tokens.weight is missing"):
            open_checkpoint(folder)
        own: Tensors = {"mtp.embed_tokens.weight": ("BF16", (build.VOCABULARY, build.HIDDEN))}
        folder = write_folder(tmp_path / "b", config(mtp_use_dedicated_embeddings=True), trunk() | mtp() | own)
        assert open_checkpoint(folder).has("mtp.embed_tokens.weight")

    def test_an_own_embedding_of_another_shape(self, tmp_path: Path) -> None:
        own: Tensors = {"mtp.embed_tokens.weight": ("BF16", (5, build.HIDDEN))}
        with pytest.raises(CheckpointError, match=r"mtp.embed_tokens.weight in model.safetensors has shape \[5, 256\]"):
            open_checkpoint(write_folder(tmp_path / "m", config(), trunk() | mtp() | own))

    def test_an_mtp_layer_alone_is_pointed_to_its_use(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m")
        write_safetensors(folder / "sidecar.safetensors", mtp())
        with pytest.raises(CheckpointError, match=r"sidecar.safetensors holds an MTP layer alone: choose a model"):
            open_checkpoint(folder / "sidecar.safetensors")


def mlx(tensors: Tensors) -> None:
    for name, (dtype, shape) in list(tensors.items()):
        if name.endswith("conv1d.weight"):
            tensors[name] = (dtype, (shape[0], shape[2], shape[1]))


class TestConventions:
    """jundot/omlx#3742, ml-explore/mlx-lm#1442: decided once per file, from the layout of the convolutions."""

    def test_published(self, tmp_path: Path) -> None:
        checkpoint = open_checkpoint(dense_folder(tmp_path / "m"))
        assert checkpoint.conventions == checkpoint.mtp_conventions == PUBLISHED
        assert PUBLISHED.norm_offset == 1.0

    def test_mlx_exports_have_shifted_norms(self, tmp_path: Path) -> None:
        checkpoint = open_checkpoint(dense_folder(tmp_path / "m", mlx))
        assert checkpoint.conventions == checkpoint.mtp_conventions == MLX
        assert (MLX.norm_offset, MLX.conv) == (0.0, "CK1")

    def test_a_published_mtp_file_beside_an_mlx_trunk(self, tmp_path: Path) -> None:
        for number, (metadata, offset) in enumerate((({"format": "pt"}, 1.0), ({"format": "mlx"}, 0.0), (None, 1.0))):
            tensors = trunk()
            mlx(tensors)
            folder = write_folder(tmp_path / str(number), config(), tensors)
            write_safetensors(folder / "mtp.safetensors", mtp(), metadata)
            checkpoint = open_checkpoint(folder)
            assert checkpoint.conventions == MLX
            assert checkpoint.mtp_conventions.norm_offset == offset

    def test_the_values_of_norms_decide_nothing(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m")
        ones = np.full(build.HIDDEN, 0x3F80, np.uint16)
        values = {name: ones for name, (_, shape) in (trunk() | mtp()).items() if shape == (build.HIDDEN,)}
        write_safetensors(folder / "model.safetensors", trunk() | mtp(), values=values)
        assert open_checkpoint(folder).conventions.norm_offset == 1.0

    def test_a_mixture_of_exports_is_refused(self, tmp_path: Path) -> None:
        name = "model.language_model.layers.1.linear_attn.conv1d.weight"
        change = {name: ("BF16", (build.CHANNELS, build.KERNEL, 1))}
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update(change))
        with pytest.raises(CheckpointError, match=r"The checkpoint mixes two exports: Tensor .*layers.0.* has shape"):
            open_checkpoint(folder)
