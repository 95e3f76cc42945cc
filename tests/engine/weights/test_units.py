"""Units of real headers, and of the variants that files come in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import CheckpointError
from engine.files.checkpoint import Checkpoint
from engine.files.tensor_spec import BLOCKS, TensorSpec, stored_bytes
from engine.weights.roles import Role, role_of
from engine.weights.units import Unit, build_units, execution_order, group_of, tensors_in_use


def spec(name: str, shape: tuple[int, ...], format_name: str = "BF16", offset: int = 0) -> TensorSpec:
    return TensorSpec(name, format_name, shape, Path("f"), offset, stored_bytes(format_name, shape), name)


def model(specs: Iterable[TensorSpec], layers: int = 1) -> Any:
    """As much of a checkpoint as units need."""
    tensors = {s.name: s for s in [spec("embed_tokens.weight", (8, 4)), *specs]}
    return SimpleNamespace(name="m", tensors=tensors, config=SimpleNamespace(layers=("full",) * layers))


def by_name(units: Iterable[Unit]) -> dict[str, Unit]:
    return {unit.name: unit for unit in units}


LAYER = spec("layers.0.self_attn.q_proj.weight", (8, 4))


def test_every_matrix_and_expert_is_in_exactly_one_unit(checkpoint: Checkpoint) -> None:
    units = build_units(checkpoint)
    streamed = [s for s in checkpoint.tensors.values() if role_of(s.name) in (Role.MATRIX, Role.EXPERT)]
    expected = sum(s.nbytes for s in streamed)
    if not checkpoint.has("lm_head.weight"):
        expected += checkpoint.spec("embed_tokens.weight").nbytes
    assert sum(unit.nbytes + unit.parts_nbytes for unit in units) == expected


def test_o19_units_in_execution_order_with_uses_per_round(dense: Checkpoint) -> None:
    units = build_units(dense, draft_tokens=3)
    assert [unit.name for unit in units] == [*(f"layers.{i}" for i in range(8)), "head", "mtp"]
    assert [unit.uses for unit in units] == [*[1.0] * 8, 1 + 3.5, 3.5]  # the head also serves the drafts


def test_o19_experts_are_parts_and_no_bytes_of_the_unit_itself(moe: Checkpoint) -> None:
    unit = by_name(build_units(moe))["layers.0"]
    assert [part.expert for part in unit.parts] == list(range(moe.config.experts))
    assert {t.name for t in unit.parts[3].tensors} == {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}
    assert "mlp.gate.weight" in {t.name for t in unit.tensors}
    assert not any("experts" in t.name for t in unit.tensors)


def test_packed_experts_are_cut_gate_rows_first() -> None:
    packed = spec("layers.0.mlp.experts.gate_up_proj", (3, 10, 4), offset=1000)  # 3 experts, 2 × 5 rows, 80 bytes each
    part = by_name(build_units(model([LAYER, packed])))["layers.0"].parts[2]
    gate, up = part.tensors
    assert (gate.name, gate.rows, gate.cols, gate.range.offset, gate.range.nbytes) == (
        "gate_proj.weight",
        5,
        4,
        1160,
        40,
    )
    assert (up.name, up.rows, up.cols, up.range.offset, up.range.nbytes) == ("up_proj.weight", 5, 4, 1200, 40)


def test_experts_one_by_one_give_the_same_names() -> None:
    single = [spec(f"layers.0.mlp.experts.{e}.{p}_proj.weight", (5, 4)) for e in (1, 0) for p in ("gate", "up", "down")]
    parts = by_name(build_units(model([LAYER, *single])))["layers.0"].parts
    assert [part.expert for part in parts] == [0, 1]
    assert [t.name for t in parts[0].tensors] == ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]


def test_tied_and_untied_heads() -> None:
    tied = by_name(build_units(model([LAYER])))["head"]
    assert (tied.tensors[0].name, tied.tensors[0].rows) == ("weight", 8)
    untied = by_name(build_units(model([LAYER, spec("lm_head.weight", (9, 4))])))["head"]
    assert untied.tensors[0].rows == 9


def test_o19_a_trimmed_head_is_a_unit_and_spares_the_model_s_own() -> None:
    drafting = [spec("mtp.fc.weight", (4, 8)), spec("mtp.lm_head.weight", (5, 4))]
    units = by_name(build_units(model([LAYER, *drafting]), draft_tokens=2))
    assert (units["draft_head"].uses, units["mtp"].uses, units["head"].uses) == (2.5, 2.5, 1.0)
    assert {t.name for t in units["mtp"].tensors} == {"fc.weight"}


def test_a_large_head_in_pieces_of_rows() -> None:
    head = spec("lm_head.weight", (1000, 4), offset=64)  # 8 bytes a row
    layer = spec("layers.0.self_attn.q_proj.weight", (300, 4))
    units = build_units(model([layer, head]), split_heads=True)
    assert [unit.name for unit in units] == ["layers.0", "head.0", "head.1", "head.2", "head.3"]
    pieces = [unit.tensors[0] for unit in units[1:]]
    assert [piece.rows for piece in pieces] == [256, 256, 256, 232]
    assert [piece.range.offset for piece in pieces] == [64 + 8 * begin for begin in (0, 256, 512, 768)]
    assert pieces[-1].range.end == 64 + head.nbytes
    assert {group_of(unit.name) for unit in units} == {"layers.0", "head"}


def test_a_head_that_is_no_larger_than_a_layer_stays_whole() -> None:
    head, layer = spec("lm_head.weight", (300, 4)), spec("layers.0.self_attn.q_proj.weight", (300, 4))
    assert [unit.name for unit in build_units(model([layer, head]), split_heads=True)] == ["layers.0", "head"]


def test_scales_are_cut_with_the_rows() -> None:
    layer = spec("layers.0.self_attn.q_proj.weight", (128, 128), "F8_E4M3")
    head = spec("lm_head.weight", (300, 128), "F8_E4M3")
    scales = [spec(f"{s.name}_scale_inv", (3, 1), "F32") for s in (layer, head)]
    pieces = build_units(model([layer, head, *scales]), split_heads=True)[1:]
    assert [piece.tensors[0].scale_rows for piece in pieces] == [(0, 1), (1, 2), (2, 3)]


def test_a_cut_inside_a_block_of_scales_is_refused() -> None:
    packed = spec("layers.0.mlp.experts.gate_up_proj", (2, 192, 128), "F8_E4M3")
    scales = spec("layers.0.mlp.experts.gate_up_proj_scale_inv", (2, 2, 1), "F32")
    with pytest.raises(CheckpointError, match="row 96"):
        build_units(model([packed, scales]))


def test_the_mtp_layer_has_names_like_any_layer(dense: Checkpoint) -> None:
    names = {t.name for t in by_name(build_units(dense))["mtp"].tensors}
    assert {"fc.weight", "self_attn.q_proj.weight", "mlp.down_proj.weight"} <= names
    assert not any(name.startswith(("mtp", "layers")) for name in names)


@pytest.mark.parametrize("plain_at", [0, 1, None])
def test_o15_the_stored_quantised_form_wins(plain_at: int | None) -> None:
    stored = replace(spec("x", (8, 32), "Q8_0"), name="layers.0.mlp.up_proj.weight.q8")
    specs = [LAYER, stored]
    if plain_at is not None:
        specs.insert(2 * plain_at, spec("layers.0.mlp.up_proj.weight", (8, 32)))
    units = by_name(build_units(model(specs)))
    found = {t.name: t.format for t in units["layers.0"].tensors}
    assert found["mlp.up_proj.weight"] == "Q8_0"
    assert len(found) == 2


def test_a_sidecar_replaces_the_checkpoint_s_mtp_layer() -> None:
    checkpoint = model([LAYER, spec("mtp.fc.weight", (4, 8)), spec("mtp.norm.weight", (4,))])
    sidecar: Any = SimpleNamespace(tensors={"mtp.fc.weight": spec("mtp.fc.weight", (4, 8), "F32")})
    used = tensors_in_use(checkpoint, sidecar)
    assert used["mtp.fc.weight"].format == "F32"
    assert "mtp.norm.weight" not in used


def test_fp8_finds_its_scales_and_is_refused_without() -> None:
    fp8 = spec("layers.0.mlp.up_proj.weight", (256, 128), "F8_E4M3")
    scales = spec("layers.0.mlp.up_proj.weight_scale_inv", (2, 1), "F32")
    (tensor,) = by_name(build_units(model([fp8, scales])))["layers.0"].tensors
    assert tensor.scale == scales.name
    with pytest.raises(CheckpointError, match="has no block scales"):
        build_units(model([fp8]))


def test_a_missing_layer_is_named() -> None:
    with pytest.raises(CheckpointError, match="layer 1"):
        build_units(model([LAYER], layers=2))


def test_a_missing_head_is_named() -> None:
    checkpoint = model([LAYER])
    del checkpoint.tensors["embed_tokens.weight"]
    with pytest.raises(CheckpointError, match=r"lm_head\.weight"):
        build_units(checkpoint)


def test_a_round_is_a_verification_pass_and_the_drafting_steps(dense: Checkpoint) -> None:
    trunk = [*(f"layers.{i}" for i in range(8)), "head"]
    assert execution_order(build_units(dense), 2) == (*trunk, "mtp", "head", "mtp", "head")
    drafting = [spec("mtp.fc.weight", (4, 8)), spec("mtp.lm_head.weight", (5, 4))]
    assert execution_order(build_units(model([LAYER, *drafting])), 1) == ("layers.0", "head", "mtp", "draft_head")
    assert execution_order(build_units(model([LAYER])), 3) == ("layers.0", "head")


def test_formats_of_this_file_are_real() -> None:
    assert {"BF16", "F32", "Q8_0", "F8_E4M3"} <= set(BLOCKS)
