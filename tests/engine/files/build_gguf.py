"""Small GGUF files, made byte by byte: see build.py."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.files import build

F32, F16, Q8_0, Q4_K, I32, I64, BF16 = 0, 1, 8, 12, 26, 27, 30
BLOCKS = {F32: (1, 4), F16: (1, 2), Q8_0: (32, 34), Q4_K: (256, 144), I32: (1, 4), I64: (1, 8), BF16: (1, 2)}

Tensors = dict[str, tuple[int, tuple[int, ...]]]
"""name → (type number, shape, rows first)"""


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def value(item: Any) -> bytes:
    """A type number and the value."""
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if isinstance(item, bytes):  # as it is: type and value
        return item
    kind = value(item[0])[:4] if item else struct.pack("<I", 4)
    return struct.pack("<I", 9) + kind + struct.pack("<Q", len(item)) + b"".join(value(part)[4:] for part in item)


def metadata(moe: bool = False, **changed: Any) -> dict[str, Any]:
    """Metadata of a model with the sizes of build.py; keys are given with `__` for `.`, None removes one."""
    arch = "qwen35moe" if moe else "qwen35"
    own: dict[str, Any] = {
        "block_count": build.LAYERS + 1,
        "context_length": 4096,
        "embedding_length": build.HIDDEN,
        "attention.head_count": build.HEADS,
        "attention.head_count_kv": build.KV_HEADS,
        "attention.key_length": build.HEAD_DIM,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": build.HEAD_DIM // 4,
        "ssm.conv_kernel": build.KERNEL,
        "ssm.state_size": build.LINEAR_DIM,
        "ssm.group_count": build.LINEAR_K_HEADS,
        "ssm.time_step_rank": build.LINEAR_V_HEADS,
        "ssm.inner_size": build.V_SIZE,
        "full_attention_interval": 4,
        "nextn_predict_layers": 1,
    }
    if moe:
        own |= {"expert_count": build.EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": build.EXPERT_INNER}
        own["expert_shared_feed_forward_length"] = build.SHARED_INNER
    else:
        own["feed_forward_length"] = build.INNER
    tokens = [f"t{index}" for index in range(296)] + ["<think>", "</think>", "<|im_end|>", "<|endoftext|>"]
    table = {"general.architecture": arch, "general.name": "small"}
    table |= {f"{arch}.{key}": item for key, item in own.items()}
    table |= {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 296 + [4, 4, 3, 3],
        "tokenizer.ggml.merges": ["t 1", "t 2"],
        "tokenizer.ggml.eos_token_id": 298,
    }
    for key, item in changed.items():
        name = key.replace("__", ".")
        table[name if name in table or name.startswith(("general.", "tokenizer.", "split.")) else f"{arch}.{name}"] = (
            item
        )
    return {key: item for key, item in table.items() if item is not None}


_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "mlp.gate.weight": "ffn_gate_inp.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
    "mlp.shared_expert.gate_proj.weight": "ffn_gate_shexp.weight",
    "mlp.shared_expert.up_proj.weight": "ffn_up_shexp.weight",
    "mlp.shared_expert.down_proj.weight": "ffn_down_shexp.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "fc.weight": "nextn.eh_proj.weight",
    "pre_fc_norm_embedding.weight": "nextn.enorm.weight",
    "pre_fc_norm_hidden.weight": "nextn.hnorm.weight",
    "norm.weight": "nextn.shared_head_norm.weight",
}
_GLOBAL = {
    "embed_tokens.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def _converted(name: str, shape: tuple[int, ...]) -> Tensors:
    """What a published tensor becomes in GGUF."""
    if name in _GLOBAL:
        return {_GLOBAL[name]: (F32, shape)}
    if name.startswith("layers."):
        _, index, rest = name.split(".", 2)
    else:
        index, rest = str(build.LAYERS), name.removeprefix("mtp.").removeprefix("layers.0.")
    if rest == "mlp.experts.gate_up_proj":
        half = (shape[0], shape[1] // 2, shape[2])
        return {f"blk.{index}.ffn_gate_exps.weight": (F32, half), f"blk.{index}.ffn_up_exps.weight": (F32, half)}
    if rest == "linear_attn.conv1d.weight":
        shape = (shape[0], shape[2])
    return {f"blk.{index}.{_NAMES[rest]}": (F32, shape)}


def trunk(moe: bool = False) -> Tensors:
    found: Tensors = {}
    for name, (_, shape) in build.trunk(moe, prefix="").items():
        found |= _converted(name, shape)
    return found


def mtp(moe: bool = False) -> Tensors:
    found: Tensors = {}
    for name, (_, shape) in build.mtp(moe, per_expert=False).items():
        found |= _converted(name, shape)
    return found


def gguf_bytes(
    table: Mapping[str, Any],
    tensors: Tensors,
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> tuple[bytes, int]:
    """(header padded to 32, bytes of data)"""
    out = [magic, struct.pack("<IQQ", version, *(counts or (len(tensors), len(table))))]
    out += [string(key) + value(item) for key, item in table.items()]
    end = 0
    for name, (kind, shape) in tensors.items():
        elements, nbytes = BLOCKS.get(kind, (1, 1))
        out.append(string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)))
        out.append(struct.pack("<IQ", kind, end))
        end += -(-math.prod(shape) // elements * nbytes // 32) * 32
    header = b"".join(out)
    return header + b"\0" * (-len(header) % 32), end


def write_gguf(
    path: Path,
    table: Mapping[str, Any],
    tensors: Tensors,
    values: Mapping[str, np.ndarray] | None = None,
    **options: Any,
) -> Path:
    """Sparse zeros, but for tensors with `values`."""
    header, size = gguf_bytes(table, tensors, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + size)
        position = len(header)
        for name, (kind, shape) in tensors.items():
            if values and name in values:
                file.seek(position)
                file.write(values[name].tobytes())
            elements, nbytes = BLOCKS.get(kind, (1, 1))
            position += -(-math.prod(shape) // elements * nbytes // 32) * 32
    return path


def dense(path: Path, **changed: Any) -> Path:
    """A sound dense model with MTP layer."""
    return write_gguf(path, metadata(**changed), trunk() | mtp())
