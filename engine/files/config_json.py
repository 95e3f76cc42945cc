"""ModelConfig from a published config.json, with its `text_config` or flat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from engine.errors import CheckpointError, UnsupportedError
from engine.files.config import LAYER_LIMIT, LayerKind, ModelConfig, kinds_by_interval, unsupported_architecture
from engine.files.notes import OTHER_VERSION

WHERE = "config.json"
_ARCHITECTURES: dict[str, Literal["qwen3_5", "qwen3_5_moe"]] = {
    "qwen3_5": "qwen3_5",
    "qwen3_5_text": "qwen3_5",
    "qwen3_5_moe": "qwen3_5_moe",
    "qwen3_5_moe_text": "qwen3_5_moe",
}
_LAYER_KINDS: dict[object, LayerKind] = {"linear_attention": "linear", "full_attention": "full"}
_MISSING = object()


class _Reader:
    """Typed access to a JSON table; every complaint names the key."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table

    def whole(self, key: str, default: object = _MISSING) -> int:
        value = self.table.get(key)
        value = default if value is None else value
        if type(value) is not int:
            raise self._wrong(key, value, "a whole number")
        return value

    def number(self, key: str, default: object = _MISSING) -> float:
        value = self.table.get(key)
        value = default if value is None else value
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise self._wrong(key, value, "a number")
        return float(value)  # type: ignore[arg-type]

    def flag(self, key: str, default: bool) -> bool:
        value = self.table.get(key)
        value = default if value is None else value
        if type(value) is not bool:
            raise self._wrong(key, value, "true or false")
        return value

    def _wrong(self, key: str, value: object, wanted: str) -> CheckpointError:
        if value is _MISSING:
            return CheckpointError(f"{WHERE} has no {key}, which must be {wanted}.")
        return CheckpointError(f"{WHERE} is damaged: {key} is {str(value)[:80]!r}, it must be {wanted}.")


def config_from_json(root: Mapping[str, Any], generation: Mapping[str, Any] | None = None) -> ModelConfig:
    """The text model that a config.json describes; `generation` is generation_config.json, for its end tokens.

    Raises UnsupportedError for other architectures and quantisations, CheckpointError for impossible numbers.
    """
    architecture = _architecture(root)
    text = root.get("text_config", root)
    if not isinstance(text, dict):
        raise CheckpointError(f"{WHERE} is damaged: text_config is not a table.")
    _refuse_variants(text)
    quantization = _quantization(root, text)
    reader = _Reader(text)
    moe = architecture == "qwen3_5_moe"
    head_dim = reader.whole("head_dim")
    rotary_dim, theta, sections = _rope(text, head_dim)
    vocabulary = reader.whole("vocab_size")
    config = ModelConfig(
        architecture=architecture,
        hidden_size=reader.whole("hidden_size"),
        intermediate_size=0 if moe else reader.whole("intermediate_size"),
        vocabulary=vocabulary,
        layers=_layers(text, reader),
        heads=reader.whole("num_attention_heads"),
        kv_heads=reader.whole("num_key_value_heads"),
        head_dim=head_dim,
        rotary_dim=rotary_dim,
        rope_theta=theta,
        mrope_sections=sections,
        rms_eps=reader.number("rms_norm_eps"),
        linear_k_heads=reader.whole("linear_num_key_heads"),
        linear_v_heads=reader.whole("linear_num_value_heads"),
        linear_k_dim=reader.whole("linear_key_head_dim"),
        linear_v_dim=reader.whole("linear_value_head_dim"),
        conv_kernel=reader.whole("linear_conv_kernel_dim", 4),
        context=reader.whole("max_position_embeddings"),
        tied=True in tie_flags(root),
        mtp_layers=reader.whole("mtp_num_hidden_layers", 0),
        mtp_dedicated_embeddings=reader.flag("mtp_use_dedicated_embeddings", False),
        experts=reader.whole("num_experts") if moe else 0,
        experts_per_token=reader.whole("num_experts_per_tok") if moe else 0,
        expert_intermediate=reader.whole("moe_intermediate_size") if moe else 0,
        shared_intermediate=reader.whole("shared_expert_intermediate_size") if moe else 0,
        eos_ids=_end_ids((generation or {}, text, root), vocabulary),
        image_token_id=_Reader(root).whole("image_token_id") if root.get("image_token_id") is not None else None,
        quantization=quantization,
    )
    config.check(WHERE)
    return config


def tie_flags(root: Mapping[str, Any]) -> set[bool]:
    """What is said about the head being the embedding: at the root, in text_config, in both, or nowhere."""
    text = root.get("text_config", {})
    return {
        _Reader(table).flag("tie_word_embeddings", False) for table in (root, text) if "tie_word_embeddings" in table
    }


def _architecture(root: Mapping[str, Any]) -> Literal["qwen3_5", "qwen3_5_moe"]:
    text = root.get("text_config")
    inner = text.get("model_type") if isinstance(text, dict) else None
    outer = root.get("model_type")
    for name in (outer, inner):
        if isinstance(name, str) and name in _ARCHITECTURES:
            return _ARCHITECTURES[name]
    classes = root.get("architectures")
    named = outer or inner or (classes[0] if isinstance(classes, list) and classes else None)
    if named is None:
        raise CheckpointError(f"{WHERE} names no model_type; is this the folder of a language model?")
    raise unsupported_architecture(str(named), WHERE)


def _refuse_variants(text: Mapping[str, Any]) -> None:
    """Members of the family that would need other arithmetic; to ignore their switches would give wrong text."""
    activation = text.get("hidden_act", "silu")
    if activation != "silu":
        raise UnsupportedError(f"{WHERE} asks for the activation {str(activation)[:40]!r}; Draftscope computes silu.")
    if text.get("attention_bias"):
        raise UnsupportedError(f"{WHERE} asks for attention biases, which Draftscope does not compute.")
    if text.get("attn_output_gate") is False:
        raise UnsupportedError(f"{WHERE} asks for attention without output gate, which Draftscope does not compute.")
    if text.get("mlp_only_layers"):
        raise UnsupportedError(
            f"{WHERE} mixes dense and expert layers (mlp_only_layers), which Draftscope does not run."
        )


def _rope(text: Mapping[str, Any], head_dim: int) -> tuple[int, float, tuple[int, ...] | None]:
    """(rotary dimensions, base, M-RoPE sections), from `rope_parameters` or the older flat keys."""
    nested = text.get("rope_parameters") or text.get("rope_scaling") or {}
    if not isinstance(nested, dict):
        raise CheckpointError(f"{WHERE} is damaged: rope_parameters is not a table.")
    kind = nested.get("rope_type", nested.get("type", "default"))
    if kind not in ("default", "mrope"):
        raise UnsupportedError(
            f"{WHERE} asks for rotary embedding of type {str(kind)[:40]!r}; Draftscope computes the default."
        )
    reader = _Reader({**text, **nested})
    rotary = head_dim * reader.number("partial_rotary_factor", 0.25)
    if rotary != int(rotary):
        raise CheckpointError(f"{WHERE} is damaged: partial_rotary_factor gives {rotary} of {head_dim} dimensions.")
    sections = nested.get("mrope_section")
    if sections is not None and (
        not isinstance(sections, list)
        or len(sections) != 3
        or not all(type(part) is int and part >= 0 for part in sections)
    ):
        raise CheckpointError(
            f"{WHERE} is damaged: mrope_section is {str(sections)[:80]}, it must be three whole numbers."
        )
    return int(rotary), reader.number("rope_theta"), tuple(sections) if sections else None


def _layers(text: Mapping[str, Any], reader: _Reader) -> tuple[LayerKind, ...]:
    count = reader.whole("num_hidden_layers")
    if not 1 <= count <= LAYER_LIMIT:
        raise CheckpointError(f"{WHERE} is damaged: num_hidden_layers is {count}, it must be from 1 to {LAYER_LIMIT}.")
    types = text.get("layer_types")
    if types is None:
        interval = reader.whole("full_attention_interval", 4)
        if interval < 1:
            raise CheckpointError(f"{WHERE} is damaged: full_attention_interval is {interval}.")
        return kinds_by_interval(count, interval)
    if not isinstance(types, list) or len(types) != count:
        length = len(types) if isinstance(types, list) else "no list"
        raise CheckpointError(f"{WHERE} is damaged: layer_types has {length} entries for {count} layers.")
    unknown = sorted({str(kind)[:40] for kind in types if not isinstance(kind, str) or kind not in _LAYER_KINDS})
    if unknown:
        raise UnsupportedError(
            f"{WHERE} has layers of type {', '.join(unknown[:4])}; Draftscope runs linear_attention and full_attention."
        )
    return tuple(_LAYER_KINDS[kind] for kind in types)


def _end_ids(tables: Iterable[Mapping[str, Any]], vocabulary: int) -> tuple[int, ...]:
    """End tokens of all tables, each once, in order; single ids and lists are both in use.

    Ids outside the vocabulary can never come and are left out.
    """
    ids: list[int] = []
    for table in tables:
        value = table.get("eos_token_id")
        for item in value if isinstance(value, list) else [value]:
            if type(item) is int and 0 <= item < vocabulary and item not in ids:
                ids.append(item)
    return tuple(ids)


def _quantization(root: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """`fp8` or empty; other quantisations are refused by name."""
    table = root.get("quantization_config") or text.get("quantization_config") or root.get("quantization")
    if not table:
        return ""
    if not isinstance(table, dict):
        raise CheckpointError(f"{WHERE} is damaged: quantization_config is not a table.")
    method = table.get("quant_method") or table.get("quant_algo") or ("MLX" if "bits" in table else "unknown")
    if str(method).lower() != "fp8":
        detail = table.get("quant_algo") or table.get("format")
        name = f"{method} ({detail})" if detail and detail != method else str(method)
        raise UnsupportedError(
            f"{WHERE} says the weights are quantised as {name[:80]}, which Draftscope does not run: {OTHER_VERSION}."
        )
    block = table.get("weight_block_size", [128, 128])
    if block != [128, 128]:
        raise UnsupportedError(
            f"{WHERE} says that FP8 blocks are {str(block)[:40]}; Draftscope computes blocks of 128 × 128."
        )
    return "fp8"
