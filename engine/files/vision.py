"""Where a checkpoint's vision tower is: `model.visual.*` in the published layout, or llama.cpp's `mmproj-*.gguf`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError, UnsupportedError
from engine.files.bounded import read_json_object
from engine.files.findings import Findings, listed
from engine.files.folder import folder_files
from engine.files.gguf import read_gguf
from engine.files.safetensors import read_safetensors
from engine.files.tensor_spec import TensorSpec

PROJECTOR = "qwen3vl_merger"
_PREFIXES = ("model.visual.", "visual.")
_FLOATS = ("BF16", "F16", "F32")
_GGUF_PARTS = {
    "attn_qkv": "attn.qkv",
    "attn_out": "attn.proj",
    "ffn_up": "mlp.linear_fc1",
    "ffn_down": "mlp.linear_fc2",
    "ln1": "norm1",
    "ln2": "norm2",
}
_GGUF_NAMES = {
    "v.patch_embd.weight": "patch_embed.proj.weight",
    "v.patch_embd.weight.1": "patch_embed.proj.weight.1",
    "v.patch_embd.bias": "patch_embed.proj.bias",
    "v.position_embd.weight": "pos_embed.weight",
    **{f"v.post_ln.{kind}": f"merger.norm.{kind}" for kind in ("weight", "bias")},
    **{f"mm.0.{kind}": f"merger.linear_fc1.{kind}" for kind in ("weight", "bias")},
    **{f"mm.2.{kind}": f"merger.linear_fc2.{kind}" for kind in ("weight", "bias")},
}


@dataclass(frozen=True, slots=True)
class VisionConfig:
    """Shape of the tower, and what the published processor does to a picture before it."""

    depth: int
    hidden_size: int
    intermediate_size: int
    heads: int
    patch: int
    merge: int
    positions: int
    """Rows of the position table, a square number."""
    out_size: int
    """The text model's hidden size."""
    min_pixels: int = 65_536
    """The published processor calls these areas `shortest_edge` and `longest_edge`."""
    max_pixels: int = 16_777_216
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)


@dataclass(frozen=True, slots=True)
class VisionSource:
    """A tower on disk; tensors by name without the `model.visual.` prefix."""

    path: Path
    config: VisionConfig
    tensors: Mapping[str, TensorSpec]


def open_vision(path: Path, hidden_size: int) -> VisionSource | None:
    """The tower of a checkpoint folder, or of an mmproj file; None if a folder has none.

    Raises:
        CheckpointError: the tower is damaged, incomplete, or made for a text model of another hidden size.
        UnsupportedError: it is of another kind.
    """
    source = _from_folder(path) if path.is_dir() else _from_gguf(path)
    if source is None:
        return None
    _check(source, hidden_size)
    return source


def _from_folder(folder: Path) -> VisionSource | None:
    root = read_json_object(folder / "config.json")
    if not isinstance(root.get("vision_config"), dict):
        return None
    findings = Findings()
    tensors = {
        spec.file_name.removeprefix(prefix): spec
        for file in folder_files(folder, findings)[0]
        for spec in read_safetensors(file, findings).tensors.values()
        for prefix in _PREFIXES
        if spec.file_name.startswith(prefix)
    }
    findings.raise_if_any()
    if "patch_embed.proj.weight" not in tensors:
        return None
    return VisionSource(folder, _config_from_json(root["vision_config"], _processor(folder), folder), tensors)


def _config_from_json(table: Mapping[str, Any], processor: Mapping[str, Any], folder: Path) -> VisionConfig:
    def whole(key: str) -> int:
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 24:
            raise CheckpointError(f"vision_config.{key} in {folder.name}/config.json is {value!r:.40}, not a size.")
        return value

    if table.get("deepstack_visual_indexes"):
        raise UnsupportedError(
            f"The vision tower of {folder.name} feeds several layers (deepstack), which cannot run here."
        )
    size = processor.get("size") if isinstance(processor.get("size"), dict) else {}
    assert isinstance(size, dict)
    return VisionConfig(
        depth=whole("depth"),
        hidden_size=whole("hidden_size"),
        intermediate_size=whole("intermediate_size"),
        heads=whole("num_heads"),
        patch=whole("patch_size"),
        merge=whole("spatial_merge_size"),
        positions=whole("num_position_embeddings"),
        out_size=whole("out_hidden_size"),
        min_pixels=_area(size.get("shortest_edge"), 65_536),
        max_pixels=_area(size.get("longest_edge"), 16_777_216),
        mean=_triple(processor.get("image_mean"), 0.5),
        std=_triple(processor.get("image_std"), 0.5),
    )


def _processor(folder: Path) -> dict[str, Any]:
    """The published processor's settings, wherever an export keeps them."""
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (folder / name).is_file():
            table = read_json_object(folder / name)
            inner = table.get("image_processor")
            return inner if isinstance(inner, dict) else table
    return {}


def _area(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 32 else default


def _triple(value: object, default: float) -> tuple[float, float, float]:
    if isinstance(value, list) and len(value) == 3 and all(isinstance(v, int | float) and abs(v) < 100 for v in value):
        return (float(value[0]), float(value[1]), float(value[2]))
    return (default, default, default)


def _from_gguf(path: Path) -> VisionSource:
    findings = Findings()
    file = read_gguf(path, findings)
    findings.raise_if_any()
    data = file.metadata
    kind = data.get("clip.projector_type", data.get("clip.vision.projector_type"))
    if data.get("general.architecture") != "clip" or kind != PROJECTOR:
        raise UnsupportedError(f"{path.name} holds the projector {kind!r:.40}; models of this family use {PROJECTOR}.")

    def whole(key: str) -> int:
        value = data.get(f"clip.vision.{key}")
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 24:
            raise CheckpointError(f"clip.vision.{key} in {path.name} is {value!r:.40}, not a size.")
        return value

    tensors = {_canonical(name): replace(spec, name=_canonical(name)) for name, spec in file.tensors.items()}
    table = tensors.get("pos_embed.weight")
    config = VisionConfig(
        depth=whole("block_count"),
        hidden_size=whole("embedding_length"),
        intermediate_size=whole("feed_forward_length"),
        heads=whole("attention.head_count"),
        patch=whole("patch_size"),
        merge=whole("spatial_merge_size") if "clip.vision.spatial_merge_size" in data else 2,
        positions=table.shape[0] if table is not None and table.shape else 1,
        out_size=whole("projection_dim"),
    )
    return VisionSource(path, config, tensors)


def _canonical(name: str) -> str:
    if name in _GGUF_NAMES:
        return _GGUF_NAMES[name]
    parts = name.split(".")
    if len(parts) == 5 and parts[:2] == ["v", "blk"] and parts[3] in _GGUF_PARTS:
        return f"blocks.{parts[2]}.{_GGUF_PARTS[parts[3]]}.{parts[4]}"
    return name


def expected_shapes(config: VisionConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of a tower by name, matrices as [rows, columns]."""
    c, merged = config, config.hidden_size * config.merge**2
    shapes: dict[str, tuple[int, ...]] = {
        "patch_embed.proj.weight": (c.hidden_size, 6 * c.patch**2),
        "patch_embed.proj.bias": (c.hidden_size,),
        "pos_embed.weight": (c.positions, c.hidden_size),
        "merger.norm.weight": (c.hidden_size,),
        "merger.norm.bias": (c.hidden_size,),
        "merger.linear_fc1.weight": (merged, merged),
        "merger.linear_fc1.bias": (merged,),
        "merger.linear_fc2.weight": (c.out_size, merged),
        "merger.linear_fc2.bias": (c.out_size,),
    }
    sizes = {
        "attn.qkv": (3 * c.hidden_size, c.hidden_size),
        "attn.proj": (c.hidden_size, c.hidden_size),
        "mlp.linear_fc1": (c.intermediate_size, c.hidden_size),
        "mlp.linear_fc2": (c.hidden_size, c.intermediate_size),
    }
    for i in range(c.depth):
        for part, shape in sizes.items():
            shapes[f"blocks.{i}.{part}.weight"], shapes[f"blocks.{i}.{part}.bias"] = shape, shape[:1]
        for norm in ("norm1", "norm2"):
            for kind in ("weight", "bias"):
                shapes[f"blocks.{i}.{norm}.{kind}"] = (c.hidden_size,)
    return shapes


def _check(source: VisionSource, hidden_size: int) -> None:
    c, name = source.config, source.path.name
    if c.out_size != hidden_size:
        raise CheckpointError(
            f"The vision tower of {name} gives vectors of {c.out_size}, the model's hidden size is {hidden_size}:"
            " they do not belong together."
        )
    if c.hidden_size % c.heads or (c.hidden_size // c.heads) % 4 or math.isqrt(c.positions) ** 2 != c.positions:
        raise CheckpointError(f"The vision tower of {name} has impossible sizes: {c}.")
    if c.depth > 256:
        raise CheckpointError(f"The vision tower of {name} announces {c.depth} blocks.")
    expected = expected_shapes(c)
    missing = [n for n in expected if n not in source.tensors]
    if missing:
        raise CheckpointError(f"The vision tower of {name} is incomplete: {listed(missing)} missing.")
    halves = "patch_embed.proj.weight.1" in source.tensors  # GGUF keeps one half per frame
    for tensor, shape in expected.items():
        spec = source.tensors[tensor]
        wanted = math.prod(shape) // (2 if halves and tensor == "patch_embed.proj.weight" else 1)
        if spec.elements != wanted or spec.shape[0] != shape[0]:
            raise CheckpointError(f"{spec.where} has shape {list(spec.shape)}, expected {list(shape)}.")
        if spec.format not in _FLOATS and (tensor.endswith("bias") or "norm" in tensor or "embed" in tensor):
            raise UnsupportedError(f"{spec.where} is {spec.format}; this part of a tower must be F32, F16 or BF16.")
