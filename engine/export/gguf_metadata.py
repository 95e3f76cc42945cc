"""What a GGUF file says about its model: architecture and sizes, recommended sampling, tokenizer, chat template."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.export.choose import FILE_TYPES
from engine.export.gguf_tokenizer import tokenizer_metadata
from engine.export.gguf_writer import f32, flags, i32, i32s, text, u32
from engine.files.bounded import FileReader
from engine.files.config import kinds_by_interval
from engine.files.gguf_cursor import Cursor

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.config import ModelConfig

_ARCHITECTURES = {"qwen3_5": "qwen35", "qwen3_5_moe": "qwen35moe"}
_SAMPLING = {"temperature": "temp", "top_p": "top_p", "min_p": "min_p", "repetition_penalty": "penalty_repeat"}
_OF_ONE_FILE = ("split.", "general.alignment", "general.file_type", "general.quantization_version")


def gguf_metadata(checkpoint: Checkpoint, wanted: str) -> dict[str, bytes]:
    """Keys and values (typed, as bytes) for a file of type `wanted`. What a GGUF source says is taken over.

    Raises:
        CheckpointError: the checkpoint has no tokenizer.
    """
    if checkpoint.kind == "gguf":
        table = stored_metadata(checkpoint.files[0]) | _blocks(checkpoint.config)
        if not checkpoint.config.mtp_layers:
            table.pop(_ARCHITECTURES[checkpoint.config.architecture] + ".nextn_predict_layers", None)
    else:
        table = {
            "general.architecture": text(_ARCHITECTURES[checkpoint.config.architecture]),
            "general.type": text("model"),
            **_sampling(checkpoint.generation_config),
            "general.name": text(checkpoint.name),
            **_sizes(checkpoint.config),
            **_blocks(checkpoint.config),
            **tokenizer_metadata(checkpoint),
        }
    return table | {"general.quantization_version": u32(2), "general.file_type": u32(FILE_TYPES[wanted])}


def stored_metadata(path: Path) -> dict[str, bytes]:
    """The metadata of a GGUF file, each value as it stands there, but for what describes that one file."""
    with FileReader(path) as file:
        cursor = Cursor(file)
        cursor.take(16)
        table = {}
        for _ in range(cursor.u64()):
            key = cursor.string()
            begin = cursor.position
            cursor.value(cursor.u32())
            table[key] = file.read(begin, cursor.position - begin)
    return {key: value for key, value in table.items() if not key.startswith(_OF_ONE_FILE)}


def _sampling(settings: Mapping[str, Any]) -> dict[str, bytes]:
    """What the model's makers recommend, of generation_config.json."""
    found = {}
    top_k = settings.get("top_k")
    if type(top_k) is int and 0 <= top_k < 1 << 31:
        found["general.sampling.top_k"] = i32(top_k)
    for name, key in _SAMPLING.items():
        if type(settings.get(name)) in (int, float):
            found[f"general.sampling.{key}"] = f32(settings[name])
    return found


def _blocks(config: ModelConfig) -> dict[str, bytes]:
    """How many blocks there are, the MTP layer's among them, and of which kinds."""
    arch = _ARCHITECTURES[config.architecture]
    table = {f"{arch}.block_count": u32(len(config.layers) + config.mtp_layers)}
    if config.mtp_layers:
        table[f"{arch}.nextn_predict_layers"] = u32(config.mtp_layers)
    recurrent = [kind == "linear" for kind in config.layers] + [False] * config.mtp_layers
    table[f"{arch}.attention.recurrent_layers"] = flags(recurrent)
    return table


def _sizes(config: ModelConfig) -> dict[str, bytes]:
    table = {
        "context_length": u32(config.context),
        "embedding_length": u32(config.hidden_size),
        "attention.head_count": u32(config.heads),
        "attention.head_count_kv": u32(config.kv_heads),
        "attention.key_length": u32(config.head_dim),
        "attention.value_length": u32(config.head_dim),
        "attention.layer_norm_rms_epsilon": f32(config.rms_eps),
        "rope.freq_base": f32(config.rope_theta),
        "rope.dimension_count": u32(config.rotary_dim),
        "rope.dimension_sections": i32s(_sections(config)),
        "ssm.conv_kernel": u32(config.conv_kernel),
        "ssm.state_size": u32(config.linear_k_dim),
        "ssm.group_count": u32(config.linear_k_heads),
        "ssm.time_step_rank": u32(config.linear_v_heads),
        "ssm.inner_size": u32(config.linear_v_size),
    }
    interval = config.layers.index("full") + 1 if "full" in config.layers else 0
    if interval and kinds_by_interval(len(config.layers), interval) == config.layers:
        table["full_attention_interval"] = u32(interval)
    if config.moe:
        table |= {
            "expert_count": u32(config.experts),
            "expert_used_count": u32(config.experts_per_token),
            "expert_feed_forward_length": u32(config.expert_intermediate),
            "expert_shared_feed_forward_length": u32(config.shared_intermediate),
        }
    else:
        table["feed_forward_length"] = u32(config.intermediate_size)
    return {f"{_ARCHITECTURES[config.architecture]}.{key}": value for key, value in table.items()}


def _sections(config: ModelConfig) -> list[int]:
    """How many pairs of rotary dimensions go by time, height, width, nothing; thirds where the model does not say."""
    half = config.rotary_dim // 2
    third = -(-half // 3)
    return [*(config.mrope_sections or (third, third, half - 2 * third)), 0]
