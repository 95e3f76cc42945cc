"""ModelConfig from the metadata of a GGUF file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from engine.errors import CheckpointError, UnsupportedError
from engine.files.config import LAYER_LIMIT, LayerKind, ModelConfig, kinds_by_interval, unsupported_architecture
from engine.files.gguf_cursor import Value
from engine.files.gguf_names import block_index, mtp_blocks
from engine.files.tensor_spec import TensorSpec

_ARCHITECTURES: dict[str, Literal["qwen3_5", "qwen3_5_moe"]] = {"qwen35": "qwen3_5", "qwen35moe": "qwen3_5_moe"}
_END_TEXTS = ("<|im_end|>", "<|endoftext|>")
_CONTROL = 3


class _Reader:
    """Typed access to the keys of one architecture; every complaint names the key and the file."""

    def __init__(self, metadata: Mapping[str, Value], prefix: str, where: str) -> None:
        self.metadata = metadata
        self.prefix = prefix
        self.where = where

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number; where some files have one per layer, the one that all layers with any agree on."""
        value = self.metadata.get(self.prefix + key, default)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            found = {int(item) for item in value} - {0}
            value = found.pop() if len(found) == 1 else value
        if type(value) is not int:
            raise self._wrong(key, value, "a whole number")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.metadata.get(self.prefix + key, default)
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise self._wrong(key, value, "a number")
        return float(value)  # type: ignore[arg-type]

    def _wrong(self, key: str, value: object, wanted: str) -> CheckpointError:
        key = self.prefix + key
        if value is None:
            return CheckpointError(f"{self.where} has no {key} in its metadata, which must be {wanted}.")
        return CheckpointError(f"{self.where} is damaged: {key} is {str(value)[:80]!r}, it must be {wanted}.")


def config_from_gguf(metadata: Mapping[str, Value], tensors: Mapping[str, TensorSpec], where: str) -> ModelConfig:
    """The text model that a GGUF file's metadata and tensor table describe; `where` is the file's name.

    Raises UnsupportedError for other architectures, CheckpointError for impossible numbers.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str):
        raise CheckpointError(f"{where} names no architecture (general.architecture) in its metadata.")
    if name not in _ARCHITECTURES:
        raise unsupported_architecture(name, where)
    reader = _Reader(metadata, name + ".", where)
    scaling = metadata.get(name + ".rope.scaling.type", "none")
    if scaling != "none":
        raise UnsupportedError(
            f"{where} asks for rotary scaling of type {str(scaling)[:40]!r}; Draftscope computes none."
        )
    moe = name == "qwen35moe"
    layers, mtp_layers = _block_counts(reader, tensors)
    heads, v_heads = reader.whole("attention.head_count"), reader.whole("ssm.time_step_rank")
    head_dim = reader.whole("attention.key_length")
    inner = reader.whole("ssm.inner_size")
    vocabulary = _vocabulary(tensors, where)
    if v_heads < 1 or inner % v_heads:
        raise CheckpointError(f"{where} is damaged: ssm.inner_size {inner} does not divide into {v_heads} heads.")
    config = ModelConfig(
        architecture=_ARCHITECTURES[name],
        hidden_size=reader.whole("embedding_length"),
        intermediate_size=0 if moe else reader.whole("feed_forward_length"),
        vocabulary=vocabulary,
        layers=_layers(reader, layers),
        heads=heads,
        kv_heads=reader.whole("attention.head_count_kv"),
        head_dim=head_dim,
        rotary_dim=reader.whole("rope.dimension_count", head_dim // 4),
        rope_theta=reader.number("rope.freq_base"),
        mrope_sections=_sections(metadata.get(name + ".rope.dimension_sections")),
        rms_eps=reader.number("attention.layer_norm_rms_epsilon"),
        linear_k_heads=reader.whole("ssm.group_count"),
        linear_v_heads=v_heads,
        linear_k_dim=reader.whole("ssm.state_size"),
        linear_v_dim=inner // v_heads,
        conv_kernel=reader.whole("ssm.conv_kernel"),
        context=reader.whole("context_length"),
        tied="output.weight" not in tensors,
        mtp_layers=mtp_layers,
        experts=reader.whole("expert_count") if moe else 0,
        experts_per_token=reader.whole("expert_used_count") if moe else 0,
        expert_intermediate=reader.whole("expert_feed_forward_length") if moe else 0,
        shared_intermediate=reader.whole("expert_shared_feed_forward_length") if moe else 0,
        eos_ids=tuple(item for item in end_ids(metadata) if 0 <= item < vocabulary),
    )
    config.check(where)
    return config


def _block_counts(reader: _Reader, tensors: Mapping[str, TensorSpec]) -> tuple[int, int]:
    """(ordinary layers, MTP layers). `block_count` includes the MTP blocks; some files lack them though the metadata
    announces them, so the tensors decide."""
    blocks, announced = reader.whole("block_count"), reader.whole("nextn_predict_layers", 0)
    if not 1 <= blocks <= LAYER_LIMIT or not 0 <= announced < blocks:
        raise CheckpointError(f"{reader.where} is damaged: {blocks} blocks, {announced} of them for MTP.")
    present = mtp_blocks(tensors)
    if len(present) > 1:
        return blocks - len(present), len(present)
    if present:
        return min(present[0], blocks), 1
    used = {block_index(name) for name in tensors}
    return (blocks, 0) if blocks - 1 in used else (blocks - announced, announced)


def _layers(reader: _Reader, count: int) -> tuple[LayerKind, ...]:
    recurrent = reader.metadata.get(reader.prefix + "attention.recurrent_layers")
    if isinstance(recurrent, np.ndarray):
        if len(recurrent) < count:
            raise CheckpointError(
                f"{reader.where} is damaged: recurrent_layers has {len(recurrent)} entries for {count} layers."
            )
        return tuple("linear" if linear else "full" for linear in recurrent[:count])
    interval = reader.whole("full_attention_interval", 4)
    if interval < 1:
        raise CheckpointError(f"{reader.where} is damaged: full_attention_interval is {interval}.")
    return kinds_by_interval(count, interval)


def _vocabulary(tensors: Mapping[str, TensorSpec], where: str) -> int:
    spec = tensors.get("token_embd.weight")
    if spec is None or len(spec.shape) != 2:
        raise CheckpointError(f"{where} has no embedding table (token_embd.weight); get the file again.")
    return spec.shape[0]


def _sections(value: Value | None) -> tuple[int, ...] | None:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and len(value) >= 3:
        return tuple(int(part) for part in value[:3])
    return None


def end_ids(metadata: Mapping[str, Value]) -> tuple[int, ...]:
    """End tokens: those that the metadata names, and the family's two where they are control tokens."""
    named = (metadata.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot"))
    ids = [value for value in named if type(value) is int]
    tokens, types = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.token_type")
    if isinstance(types, np.ndarray) and hasattr(tokens, "__len__"):
        control = np.flatnonzero(types[: len(tokens)] == _CONTROL)[:4096]  # type: ignore[arg-type]
        ids += [int(index) for index in control if tokens[int(index)] in _END_TEXTS]  # type: ignore[index]
    return tuple(dict.fromkeys(ids))
