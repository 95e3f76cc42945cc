"""Which tensor is what."""

from __future__ import annotations

import pytest

from engine.files.checkpoint import Checkpoint
from engine.weights.roles import Role, plain_name, role_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("embed_tokens.weight", Role.TABLE),
        ("mtp.embed_tokens.weight", Role.TABLE),
        ("norm.weight", Role.NORM),
        ("mtp.norm.weight", Role.NORM),
        ("mtp.pre_fc_norm_embedding.weight", Role.NORM),
        ("mtp.pre_fc_norm_hidden.weight", Role.NORM),
        ("layers.0.input_layernorm.weight", Role.NORM),
        ("layers.0.post_attention_layernorm.weight", Role.NORM),
        ("layers.3.self_attn.q_norm.weight", Role.NORM),
        ("layers.3.self_attn.k_norm.weight", Role.NORM),
        ("layers.0.linear_attn.norm.weight", Role.PLAIN),
        ("layers.0.linear_attn.dt_bias", Role.PLAIN),
        ("layers.0.mlp.shared_expert_gate.weight", Role.PLAIN),
        ("layers.0.linear_attn.A_log", Role.DECAY),
        ("layers.0.linear_attn.conv1d.weight", Role.CONV),
        ("layers.0.linear_attn.in_proj_qkv.weight", Role.MATRIX),
        ("layers.0.mlp.gate.weight", Role.MATRIX),
        ("layers.0.mlp.gate_proj.weight", Role.MATRIX),
        ("layers.0.mlp.gate_proj.weight_scale_inv", Role.SCALE),
        ("layers.0.mlp.experts.down_proj", Role.EXPERT),
        ("layers.0.mlp.experts.down_proj_scale_inv", Role.SCALE),
        ("mtp.layers.0.mlp.experts.7.up_proj.weight", Role.EXPERT),
        ("mtp.layers.0.mlp.experts.7.up_proj.weight_scale_inv", Role.SCALE),
        ("lm_head.weight", Role.MATRIX),
        ("mtp.lm_head.weight", Role.MATRIX),
        ("mtp.fc.weight.q8", Role.MATRIX),
        ("layers.0.input_layernorm.weight.q8", Role.NORM),
        ("mtp.d2t", Role.IGNORED),
        ("layers.3.self_attn.rotary_emb.inv_freq", Role.IGNORED),
    ],
)
def test_role(name: str, role: Role) -> None:
    assert role_of(name) is role


def test_the_stored_form_is_no_part_of_the_name() -> None:
    assert plain_name("mtp.fc.weight.q4") == "mtp.fc.weight"
    assert plain_name("mtp.fc.weight") == "mtp.fc.weight"


def test_no_tensor_of_a_real_checkpoint_is_ignored(checkpoint: Checkpoint) -> None:
    assert [name for name in checkpoint.tensors if role_of(name) is Role.IGNORED] == []


def test_every_quantised_tensor_of_more_than_one_row_is_streamed_or_a_table(checkpoint: Checkpoint) -> None:
    kept = {Role.MATRIX, Role.EXPERT, Role.TABLE, Role.CONV}
    assert {role_of(spec.name) for spec in checkpoint.tensors.values() if len(spec.shape) > 1 < min(spec.shape)} <= kept
