"""Small checkpoints, made byte by byte so that tests can make broken ones too. Data is zeros: only headers matter.

The tensor lists are written down from the published layouts, independently of what the engine expects.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Tensors = dict[str, tuple[str, tuple[int, ...]]]
"""name → (dtype, shape)"""

HIDDEN, INNER, VOCABULARY, LAYERS = 256, 512, 300, 4
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 64
LINEAR_K_HEADS, LINEAR_V_HEADS, LINEAR_DIM, KERNEL = 2, 4, 32, 4
EXPERTS, EXPERT_INNER, SHARED_INNER = 4, 256, 128
K_SIZE, V_SIZE = LINEAR_K_HEADS * LINEAR_DIM, LINEAR_V_HEADS * LINEAR_DIM
CHANNELS = 2 * K_SIZE + V_SIZE

SIZES = {
    "F64": 8,
    "I64": 8,
    "F32": 4,
    "I32": 4,
    "U32": 4,
    "BF16": 2,
    "F16": 2,
    "U8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "BOOL": 1,
}


def config(moe: bool = False, **text: Any) -> dict[str, Any]:
    """A config.json; keyword arguments replace (or with None remove) keys of text_config."""
    table: dict[str, Any] = {
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "layer_types": ["linear_attention"] * (LAYERS - 1) + ["full_attention"],
        "linear_conv_kernel_dim": KERNEL,
        "linear_key_head_dim": LINEAR_DIM,
        "linear_num_key_heads": LINEAR_K_HEADS,
        "linear_num_value_heads": LINEAR_V_HEADS,
        "linear_value_head_dim": LINEAR_DIM,
        "max_position_embeddings": 4096,
        "model_type": "qwen3_5_moe_text" if moe else "qwen3_5_text",
        "mtp_num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-6,
        "vocab_size": VOCABULARY,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25},
    }
    if moe:
        table |= {"num_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_INNER}
        table |= {"shared_expert_intermediate_size": SHARED_INNER}
    else:
        table["intermediate_size"] = INNER
    table = {key: value for key, value in (table | text).items() if value is not None}
    kind = "qwen3_5_moe" if moe else "qwen3_5"
    return {"model_type": kind, "text_config": table, "tie_word_embeddings": not moe, "eos_token_id": [298, 299]}


def attention(at: str) -> Tensors:
    return {
        at + "q_proj.weight": ("BF16", (2 * HEADS * HEAD_DIM, HIDDEN)),
        at + "k_proj.weight": ("BF16", (KV_HEADS * HEAD_DIM, HIDDEN)),
        at + "v_proj.weight": ("BF16", (KV_HEADS * HEAD_DIM, HIDDEN)),
        at + "o_proj.weight": ("BF16", (HIDDEN, HEADS * HEAD_DIM)),
        at + "q_norm.weight": ("BF16", (HEAD_DIM,)),
        at + "k_norm.weight": ("BF16", (HEAD_DIM,)),
    }


def linear_attention(at: str) -> Tensors:
    return {
        at + "in_proj_qkv.weight": ("BF16", (CHANNELS, HIDDEN)),
        at + "in_proj_z.weight": ("BF16", (V_SIZE, HIDDEN)),
        at + "in_proj_b.weight": ("BF16", (LINEAR_V_HEADS, HIDDEN)),
        at + "in_proj_a.weight": ("BF16", (LINEAR_V_HEADS, HIDDEN)),
        at + "conv1d.weight": ("BF16", (CHANNELS, 1, KERNEL)),
        at + "A_log": ("F32", (LINEAR_V_HEADS,)),
        at + "dt_bias": ("BF16", (LINEAR_V_HEADS,)),
        at + "norm.weight": ("F32", (LINEAR_DIM,)),
        at + "out_proj.weight": ("BF16", (HIDDEN, V_SIZE)),
    }


def swiglu(at: str, inner: int) -> Tensors:
    return {
        at + "gate_proj.weight": ("BF16", (inner, HIDDEN)),
        at + "up_proj.weight": ("BF16", (inner, HIDDEN)),
        at + "down_proj.weight": ("BF16", (HIDDEN, inner)),
    }


def feed_forward(at: str, moe: bool, per_expert: bool = False) -> Tensors:
    if not moe:
        return swiglu(at, INNER)
    found = {at + "gate.weight": ("BF16", (EXPERTS, HIDDEN)), at + "shared_expert_gate.weight": ("BF16", (1, HIDDEN))}
    found |= swiglu(at + "shared_expert.", SHARED_INNER)
    if per_expert:
        for index in range(EXPERTS):
            found |= swiglu(f"{at}experts.{index}.", EXPERT_INNER)
        return found
    return found | {
        at + "experts.gate_up_proj": ("BF16", (EXPERTS, 2 * EXPERT_INNER, HIDDEN)),
        at + "experts.down_proj": ("BF16", (EXPERTS, HIDDEN, EXPERT_INNER)),
    }


def norms(at: str) -> Tensors:
    return {
        at + "input_layernorm.weight": ("BF16", (HIDDEN,)),
        at + "post_attention_layernorm.weight": ("BF16", (HIDDEN,)),
    }


def mtp(moe: bool = False, prefix: str = "mtp.", per_expert: bool = True) -> Tensors:
    found: Tensors = {
        prefix + "fc.weight": ("BF16", (HIDDEN, 2 * HIDDEN)),
        prefix + "pre_fc_norm_embedding.weight": ("BF16", (HIDDEN,)),
        prefix + "pre_fc_norm_hidden.weight": ("BF16", (HIDDEN,)),
        prefix + "norm.weight": ("BF16", (HIDDEN,)),
    }
    at = prefix + "layers.0."
    return found | norms(at) | attention(at + "self_attn.") | feed_forward(at + "mlp.", moe, per_expert)


def trunk(
    moe: bool = False, prefix: str = "model.language_model.", kinds: str = "lllf", per_expert: bool = False
) -> Tensors:
    """A whole model without MTP layer; `kinds` has an l or f per layer. Mixtures of experts get an untied head."""
    found: Tensors = {prefix + "embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN))}
    for index, kind in enumerate(kinds):
        at = f"{prefix}layers.{index}."
        found |= norms(at)
        found |= attention(at + "self_attn.") if kind == "f" else linear_attention(at + "linear_attn.")
        found |= feed_forward(at + "mlp.", moe, per_expert)
    found[prefix + "norm.weight"] = ("BF16", (HIDDEN,))
    if moe:
        found["lm_head.weight"] = ("BF16", (VOCABULARY, HIDDEN))
    return found


def safetensors_bytes(header: bytes | Mapping[str, Any], data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def header_of(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> tuple[dict[str, Any], int]:
    """(header, bytes of data)"""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, (dtype, shape) in tensors.items():
        nbytes = math.prod(shape) * SIZES.get(dtype, 1)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + nbytes]}
        end += nbytes
    return header, end


def write_safetensors(
    path: Path,
    tensors: Tensors,
    metadata: Mapping[str, str] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Sparse zeros, but for tensors with `values`."""
    header, size = header_of(tensors, metadata)
    start = safetensors_bytes(header)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
        for name, array in (values or {}).items():
            file.seek(len(start) + header[name]["data_offsets"][0])
            file.write(array.tobytes())
    return path


def write_folder(
    folder: Path,
    settings: Mapping[str, Any],
    tensors: Tensors,
    *,
    shards: int = 1,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """A published folder: one file without index, or several with one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text("{}")
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors, metadata)
        return folder
    table = {}
    names = list(tensors)
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = names[number::shards]
        write_safetensors(folder / file, {name: tensors[name] for name in part}, metadata)
        table |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))
    return folder


def dense_folder(folder: Path, change: Callable[[Tensors], None] | None = None, **text: Any) -> Path:
    """A sound dense checkpoint with MTP layer, but for what `change` does to its tensors."""
    tensors = trunk() | mtp()
    if change is not None:
        change(tensors)
    return write_folder(folder, config(**text), tensors)
