"""Weights in other forms than plain bf16: FP8 with scales, pre-quantised q8 and q4, experts packed or apart."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from engine.errors import CheckpointError, UnsupportedError
from engine.files.checkpoint import open_checkpoint
from tests.engine.files import build, build_gguf
from tests.engine.files.build import Tensors, config, dense_folder, mtp, trunk, write_folder, write_safetensors

UP = "model.language_model.layers.0.mlp.up_proj.weight"
FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def fp8(tensors: Tensors, suffix: str = "_scale_inv") -> Tensors:
    """Every projection as FP8 with block scales, as the published FP8 versions."""
    out: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        out[name] = (dtype, shape)
        if len(shape) >= 2 and ("_proj" in name) and min(shape[-2:]) >= 64:
            out[name] = ("F8_E4M3", shape)
            out[name + suffix] = ("F32", (*shape[:-2], math.ceil(shape[-2] / 128), math.ceil(shape[-1] / 128)))
    return out


class TestFp8:
    @pytest.mark.parametrize("suffix", ["_scale_inv", "_scale"])
    def test_scales_belong_to_their_matrix(self, tmp_path: Path, suffix: str) -> None:
        """unslothai/unsloth#6978: never dropped."""
        folder = write_folder(tmp_path / "m", config() | FP8, fp8(trunk() | mtp(), suffix))
        checkpoint = open_checkpoint(folder)
        scale = checkpoint.scale("layers.0.mlp.up_proj.weight")
        assert scale is not None
        assert (scale.shape, scale.file_name) == ((4, 2), UP + suffix)
        assert checkpoint.scale("layers.0.linear_attn.in_proj_a.weight") is None
        plain = open_checkpoint(dense_folder(tmp_path / "plain"))
        assert checkpoint.parameters == plain.parameters

    def test_without_scales_it_is_refused(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({UP: ("F8_E4M3", (512, 256))}))
        with pytest.raises(
            CheckpointError, match=rf"{UP} in model.safetensors is FP8 without its scales \({UP}_scale_inv\)"
        ):
            open_checkpoint(folder)

    def test_scales_of_another_shape(self, tmp_path: Path) -> None:
        change: Tensors = {UP: ("F8_E4M3", (512, 256)), UP + "_scale_inv": ("F32", (512, 1))}
        with pytest.raises(
            CheckpointError, match=r"up_proj.weight_scale_inv .* has shape \[512, 1\]; \[4, 2\] was expected"
        ):
            open_checkpoint(dense_folder(tmp_path / "m", lambda tensors: tensors.update(change)))

    def test_e5m2_is_refused(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({UP: ("F8_E5M2", (512, 256))}))
        with pytest.raises(UnsupportedError, match=r"up_proj.weight \(F8_E5M2\)"):
            open_checkpoint(folder)

    def test_scales_without_an_fp8_matrix_are_not_ignored(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({UP + "_scale_inv": ("F32", (4, 2))}))
        with pytest.raises(CheckpointError, match=r"does not know: .*up_proj.weight_scale_inv"):
            open_checkpoint(folder)

    @pytest.mark.parametrize("per_expert", [False, True])
    def test_experts(self, tmp_path: Path, per_expert: bool) -> None:
        tensors = fp8(trunk(True, per_expert=per_expert) | mtp(True, per_expert=per_expert))
        layout = open_checkpoint(write_folder(tmp_path / "m", config(moe=True) | FP8, tensors)).experts("layers.0")
        one = layout.expert(2)
        part = "gate_proj" if per_expert else "gate_up_proj"
        rows = 256 if per_expert else 512
        assert one[part].shape == (rows, 256)
        assert one[part + "_scale_inv"].shape == (rows // 128, 2)
        assert one[part + "_scale_inv"].nbytes == rows // 128 * 2 * 4


class TestPreQuantised:
    """Row O-15 of the contract: what is stored wins."""

    @pytest.mark.parametrize(("suffix", "block", "format_name"), [(".q8", 34, "Q8_0"), (".q4", 18, "Q4_0")])
    @pytest.mark.parametrize("beside", [False, True])
    def test_instead_of_or_beside_the_plain_weight(
        self, tmp_path: Path, suffix: str, block: int, format_name: str, beside: bool
    ) -> None:
        def store(tensors: Tensors) -> None:
            tensors[UP + suffix] = ("U8", (512, 256 // 32 * block))
            if not beside:
                del tensors[UP]

        spec = open_checkpoint(dense_folder(tmp_path / "m", store)).spec("layers.0.mlp.up_proj.weight")
        assert (spec.format, spec.shape, spec.nbytes) == (format_name, (512, 256), 512 * 8 * block)
        assert spec.file_name == UP + suffix

    def test_eight_bits_before_four(self, tmp_path: Path) -> None:
        both: Tensors = {UP + ".q4": ("U8", (512, 144)), UP + ".q8": ("U8", (512, 272))}
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update(both))
        assert open_checkpoint(folder).spec("layers.0.mlp.up_proj.weight").format == "Q8_0"

    @pytest.mark.parametrize(("dtype", "shape"), [("F32", (512, 272)), ("U8", (512, 270)), ("U8", (512,))])
    def test_bytes_that_are_no_blocks(self, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({UP + ".q8": (dtype, shape)}))
        with pytest.raises(CheckpointError, match="must hold rows of Q8_0 blocks of 34 bytes"):
            open_checkpoint(folder)

    def test_another_size_than_the_weight_s(self, tmp_path: Path) -> None:
        folder = dense_folder(tmp_path / "m", lambda tensors: tensors.update({UP + ".q8": ("U8", (512, 34))}))
        with pytest.raises(
            CheckpointError, match=r"up_proj.weight.q8 .* has shape \[512, 32\]; \[512, 256\] was expected"
        ):
            open_checkpoint(folder)

    def test_the_mtp_layer_is_recognised_by_a_stored_fc(self, tmp_path: Path) -> None:
        """Row O-16: keyed on fc.weight in any stored form."""

        def store(tensors: Tensors) -> None:
            del tensors["mtp.fc.weight"]
            tensors["mtp.fc.weight.q8"] = ("U8", (256, 512 // 32 * 34))

        assert open_checkpoint(dense_folder(tmp_path / "m", store)).config.mtp_layers == 1


class TestExperts:
    def test_packed_and_apart_give_the_same_parts(self, tmp_path: Path) -> None:
        packed = open_checkpoint(write_folder(tmp_path / "a", config(moe=True), trunk(True) | mtp(True)))
        apart = open_checkpoint(
            write_folder(tmp_path / "b", config(moe=True), trunk(True, per_expert=True) | mtp(True))
        )
        mixed = packed.experts("mtp.layers.0")
        assert packed.experts("layers.1").parts == ("gate_up_proj", "down_proj")
        assert apart.experts("layers.1").parts == mixed.parts == ("gate_proj", "up_proj", "down_proj")
        assert packed.parameters == apart.parameters
        assert (
            apart.experts("layers.1")
            .expert(3)["down_proj"]
            .file_name.endswith("layers.1.mlp.experts.3.down_proj.weight")
        )

    def test_slices_of_packed_experts_follow_each_other(self, tmp_path: Path) -> None:
        checkpoint = open_checkpoint(write_folder(tmp_path / "a", config(moe=True), trunk(True) | mtp(True)))
        whole = checkpoint.spec("layers.0.mlp.experts.down_proj")
        layout = checkpoint.experts("layers.0")
        slices = [layout.expert(index)["down_proj"] for index in range(build.EXPERTS)]
        assert [spec.offset for spec in slices] == [whole.offset + index * whole.nbytes // 4 for index in range(4)]
        assert {spec.shape for spec in slices} == {(256, 256)}
        assert slices[3].offset + slices[3].nbytes == whole.offset + whole.nbytes

    def test_slices_hold_the_expert_s_values(self, tmp_path: Path) -> None:
        name = "model.language_model.layers.2.mlp.experts.gate_up_proj"
        tensors = trunk(True) | mtp(True)
        values = np.arange(4 * 512 * 256, dtype=np.uint16).reshape(4, 512, 256)
        folder = write_folder(tmp_path / "m", config(moe=True), tensors)
        write_safetensors(folder / "model.safetensors", tensors, values={name: values})
        spec = open_checkpoint(folder).experts("layers.2").expert(3)["gate_up_proj"]
        with spec.file.open("rb") as file:
            file.seek(spec.offset)
            assert file.read(spec.nbytes) == values[3].tobytes()

    def test_mlx_switch_names(self, tmp_path: Path) -> None:
        tensors: Tensors = {}
        for name, (dtype, shape) in (trunk(True, per_expert=True) | mtp(True)).items():
            if ".experts.0." in name and "mtp" not in name:
                tensors[name.replace("experts.0", "switch_mlp")] = (dtype, (build.EXPERTS, *shape))
            elif ".experts." not in name or "mtp" in name:
                tensors[name] = (dtype, shape)
        layout = open_checkpoint(write_folder(tmp_path / "m", config(moe=True), tensors)).experts("layers.0")
        assert (layout.packed, layout.parts) == (True, ("gate_proj", "up_proj", "down_proj"))

    def test_gguf_parts(self, tmp_path: Path) -> None:
        tensors = build_gguf.trunk(True) | build_gguf.mtp(True)
        layout = open_checkpoint(
            build_gguf.write_gguf(tmp_path / "x.gguf", build_gguf.metadata(True), tensors)
        ).experts("layers.0")
        assert layout.parts == ("gate_proj", "up_proj", "down_proj")
        assert layout.expert(1)["up_proj"].shape == (256, 256)

    def test_gguf_gate_and_up_together(self, tmp_path: Path) -> None:
        tensors = build_gguf.trunk(True) | build_gguf.mtp(True)
        kind, shape = tensors.pop("blk.0.ffn_gate_exps.weight")
        del tensors["blk.0.ffn_up_exps.weight"]
        tensors["blk.0.ffn_gate_up_exps.weight"] = (kind, (shape[0], 2 * shape[1], shape[2]))
        layout = open_checkpoint(
            build_gguf.write_gguf(tmp_path / "x.gguf", build_gguf.metadata(True), tensors)
        ).experts("layers.0")
        assert layout.parts == ("gate_up_proj", "down_proj")

    def test_quantised_experts_are_cut_at_block_rows(self, data: Path) -> None:
        checkpoint = open_checkpoint(data / "tiny-moe" / "gguf" / "tiny-moe-Q4_K_M.gguf")
        spec = checkpoint.spec("layers.0.mlp.experts.gate_proj")
        one = checkpoint.experts("layers.0").expert(7)["gate_proj"]
        assert (spec.format, spec.shape) == ("Q4_K", (8, 64, 256))
        assert (one.nbytes, one.offset) == (64 * 144, spec.offset + 7 * 64 * 144)

    def test_a_missing_expert_is_named(self, tmp_path: Path) -> None:
        tensors = trunk(True, per_expert=True) | mtp(True)
        del tensors["model.language_model.layers.2.mlp.experts.3.up_proj.weight"]
        with pytest.raises(CheckpointError, match=r"Tensor layers.2.mlp.experts.3.up_proj.weight is missing from m"):
            open_checkpoint(write_folder(tmp_path / "m", config(moe=True), tensors))

    def test_more_experts_than_announced(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "m", config(moe=True, num_experts=3), trunk(True) | mtp(True))
        with pytest.raises(
            CheckpointError, match=r"has shape \[4, 512, 256\]; \[3, 512, 256\] was expected|has shape \[4, 256\]"
        ):
            open_checkpoint(folder)

    @pytest.mark.parametrize("shape", [(1, 256), (256,)])
    def test_both_forms_of_the_shared_gate(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        """Row L-03 of the contract."""
        tensors = trunk(True) | mtp(True)
        tensors["model.language_model.layers.0.mlp.shared_expert_gate.weight"] = ("BF16", shape)
        assert open_checkpoint(write_folder(tmp_path / "m", config(moe=True), tensors)).config.moe
