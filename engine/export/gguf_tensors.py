"""The tensors of a checkpoint as GGUF has them: names, order of value heads, experts stacked, small ones in F32."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.export.choose import choose_format
from engine.export.gguf_writer import Entry
from engine.export.rows import FloatArray, IntArray, Slab
from engine.files.expected import MTP_HEAD
from engine.files.gguf_names import gguf_name
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import TensorSpec
from engine.weights.roles import VECTOR_ROLES, Role, role_of

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.config import ModelConfig


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor to write: its entry in the table, and where its values come from."""

    entry: Entry
    slabs: tuple[Slab, ...] = ()
    values: FloatArray | None = None
    """Small tensors: the values themselves, as F32."""
    source: str = ""
    """The format it is in now."""


def gguf_tensors(checkpoint: Checkpoint, vectors: Mapping[str, FloatArray], wanted: str) -> list[GgufTensor]:
    """Every tensor of the checkpoint, matrices in formats for `wanted` (see `engine.export.choose`). `vectors` as
    `engine.weights.vectors.load_vectors` gives them."""
    config = checkpoint.config
    blocks = len(config.layers) + config.mtp_layers
    order = _HeadOrder(config, tiled=checkpoint.conventions.v_heads == "tiled")
    found = []
    units: set[str] = set()
    for name, spec in checkpoint.tensors.items():
        role = role_of(name)
        if role in VECTOR_ROLES:
            found.append(_vector(name, order.of_vector(name, _vector_values(name, vectors)), config))
        elif role is Role.EXPERT:
            units.add(name.partition(".mlp.experts.")[0])
        elif role in (Role.MATRIX, Role.TABLE):
            head = name in ("lm_head.weight", MTP_HEAD) or (config.tied and name == "embed_tokens.weight")
            slab = _slab(spec, vectors, order)
            chosen = choose_format(name, spec.shape, spec.format, wanted, blocks, head)
            found.append(_matrix(name, spec.shape, chosen, (slab,), config))
    for unit in units:
        found += _experts(checkpoint, unit, vectors, wanted, blocks)
    return sorted(found, key=lambda tensor: _place(tensor.entry.name))


def _place(name: str) -> tuple[int, str]:
    block = re.match(r"blk\.(\d+)\.", name)
    return (int(block[1]) + 1 if block else 0, name)


def _vector_values(name: str, vectors: Mapping[str, FloatArray]) -> FloatArray:
    if role_of(name) is Role.DECAY:
        return -vectors[name.removesuffix("A_log") + "decay_rate"]
    return vectors[name]


def _vector(name: str, values: FloatArray, config: ModelConfig) -> GgufTensor:
    entry = Entry(gguf_name(name, len(config.layers)), "F32", values.shape)
    return GgufTensor(entry, values=np.ascontiguousarray(values, "<f4"), source="F32")


def _matrix(name: str, shape: tuple[int, ...], chosen: str, slabs: tuple[Slab, ...], config: ModelConfig) -> GgufTensor:
    entry = Entry(gguf_name(name, len(config.layers)), chosen, shape)
    return GgufTensor(entry, slabs, source=slabs[0].spec.format)


def _slab(spec: TensorSpec, vectors: Mapping[str, FloatArray], order: _HeadOrder) -> Slab:
    rows, columns = order.of_matrix(spec.name, spec.shape)
    return Slab(spec, rows, vectors.get(spec.name + SCALE_SUFFIX), columns)


def _experts(
    checkpoint: Checkpoint, unit: str, vectors: Mapping[str, FloatArray], wanted: str, blocks: int
) -> Iterator[GgufTensor]:
    """The three stacks [experts, rows, columns] of one layer."""
    config, layout = checkpoint.config, checkpoint.experts(unit)
    inner, hidden = config.expert_intermediate, config.hidden_size
    for part, (rows, columns) in (
        ("gate_proj", (inner, hidden)),
        ("up_proj", (inner, hidden)),
        ("down_proj", (hidden, inner)),
    ):
        fused = part not in layout.parts
        stored = "gate_up_proj" if fused else part
        begin = inner if fused and part == "up_proj" else 0
        slabs = []
        for index in range(layout.count):
            spec = layout.expert(index)[stored]
            scale = _expert_scale(f"{layout.prefix}.{stored}", f"{layout.prefix}.{index}.{stored}", index, vectors)
            slabs.append(Slab(spec, np.arange(begin, begin + rows), scale))
        name, shape = f"{layout.prefix}.{part}", (layout.count, rows, columns)
        chosen = choose_format(name, shape, slabs[0].spec.format, wanted, blocks, head=False)
        yield _matrix(name, shape, chosen, tuple(slabs), config)


def _expert_scale(packed: str, single: str, index: int, vectors: Mapping[str, FloatArray]) -> FloatArray | None:
    scales = vectors.get(packed + SCALE_SUFFIX)
    return scales[index] if scales is not None else vectors.get(f"{single}.weight{SCALE_SUFFIX}")


class _HeadOrder:
    """From grouped value heads (head j uses key head j // (nv / nk)) to GGUF's tiled ones (j % nk)."""

    def __init__(self, config: ModelConfig, tiled: bool) -> None:
        keys, heads = config.linear_k_heads, config.linear_v_heads
        self._heads: IntArray | None = None
        if not tiled and keys != heads:
            self._heads = np.arange(heads).reshape(keys, heads // keys).T.reshape(-1)
            values = (self._heads[:, None] * config.linear_v_dim + np.arange(config.linear_v_dim)).reshape(-1)
            self._values = values
            before = 2 * config.linear_k_size
            self._channels = np.concatenate([np.arange(before), before + values])

    def of_vector(self, name: str, values: FloatArray) -> FloatArray:
        """The vector with its heads in GGUF's order."""
        if self._heads is None:
            return values
        if name.endswith(("linear_attn.A_log", "linear_attn.dt_bias")):
            return values[self._heads]
        return values[self._channels] if name.endswith("linear_attn.conv1d.weight") else values

    def of_matrix(self, name: str, shape: tuple[int, ...]) -> tuple[IntArray, IntArray | None]:
        """(rows in GGUF's order, columns in it or None where they stay)."""
        rows = np.arange(shape[0])
        if self._heads is None or ".linear_attn." not in name:
            return rows, None
        if name.endswith("out_proj.weight"):
            return rows, self._values
        if name.endswith("in_proj_qkv.weight"):
            return self._channels, None
        return (self._values if name.endswith("in_proj_z.weight") else self._heads), None
