"""Names in GGUF files → canonical names.

A block from `block_count − nextn_predict_layers` on is the MTP layer, whatever it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_GLOBAL = {
    "token_embd.weight": "embed_tokens.weight",
    "output_norm.weight": "norm.weight",
    "output.weight": "lm_head.weight",
}
_FEED_FORWARD = {
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "ffn_gate_exps.weight": "mlp.experts.gate_proj",
    "ffn_up_exps.weight": "mlp.experts.up_proj",
    "ffn_gate_up_exps.weight": "mlp.experts.gate_up_proj",
    "ffn_down_exps.weight": "mlp.experts.down_proj",
    "ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight",
    "ffn_gate_inp_shexp.weight": "mlp.shared_expert_gate.weight",
}
_ATTENTION = {
    "attn_norm.weight": "input_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
}
_LINEAR_ATTENTION = {
    "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
    "attn_gate.weight": "linear_attn.in_proj_z.weight",
    "ssm_beta.weight": "linear_attn.in_proj_b.weight",
    "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
    "ssm_conv1d.weight": "linear_attn.conv1d.weight",
    "ssm_a": "linear_attn.A_log",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_norm.weight": "linear_attn.norm.weight",
    "ssm_out.weight": "linear_attn.out_proj.weight",
}
_LAYER = _FEED_FORWARD | _ATTENTION | _LINEAR_ATTENTION
_NEXTN = {
    "nextn.eh_proj.weight": "mtp.fc.weight",
    "nextn.enorm.weight": "mtp.pre_fc_norm_embedding.weight",
    "nextn.hnorm.weight": "mtp.pre_fc_norm_hidden.weight",
    "nextn.shared_head_norm.weight": "mtp.norm.weight",
    "nextn.shared_head_head.weight": "mtp.lm_head.weight",
    "nextn.embed_tokens.weight": "mtp.embed_tokens.weight",
}
_BLOCK = re.compile(r"blk\.(0|[1-9]\d{0,5})\.(.+)")


def canonical_gguf_name(name: str, layers: int) -> str:
    """The canonical name of a tensor, in a model with `layers` ordinary layers. Unknown names come back as they are."""
    if name in _GLOBAL:
        return _GLOBAL[name]
    block = _BLOCK.fullmatch(name)
    if block is None:
        return name
    index, rest = int(block[1]), block[2]
    if index < layers:
        return f"layers.{index}.{_LAYER[rest]}" if rest in _LAYER else name
    if rest in _NEXTN and index == layers:
        return _NEXTN[rest]
    return f"mtp.layers.{index - layers}.{_LAYER[rest]}" if rest in _LAYER else name


def gguf_name(name: str, layers: int) -> str:
    """The name in GGUF of a tensor with this canonical name; the reverse of `canonical_gguf_name`. KeyError if none."""
    if name in _TO_GLOBAL:
        return _TO_GLOBAL[name]
    if name in _TO_NEXTN:
        return f"blk.{layers}.{_TO_NEXTN[name]}"
    head, index, rest = name.removeprefix("mtp.").split(".", 2)
    if head != "layers":
        raise KeyError(name)
    return f"blk.{int(index) + (layers if name.startswith('mtp.') else 0)}.{_TO_LAYER[rest]}"


_TO_GLOBAL, _TO_LAYER, _TO_NEXTN = (
    {canonical: stored for stored, canonical in table.items()} for table in (_GLOBAL, _LAYER, _NEXTN)
)


def block_index(name: str) -> int | None:
    """The block that a tensor belongs to, if any."""
    block = _BLOCK.fullmatch(name)
    return None if block is None else int(block[1])


def mtp_blocks(names: Iterable[str]) -> list[int]:
    """The blocks that are MTP layers by their tensors, in order."""
    found = {block_index(name) for name in names if name.endswith(".nextn.eh_proj.weight")}
    return sorted(block for block in found if block is not None)
