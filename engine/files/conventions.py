"""How a file writes the same model: decided once per file, from what no other convention can look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.errors import CheckpointError
from engine.files.safetensors import SafetensorsFile
from engine.files.tensor_spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Conventions:
    """What must be undone on reading."""

    norm_offset: float = 1.0
    """Added to stored norm weights (never to `linear_attn.norm`): 1.0 where they are zero-centred, 0.0 for 1 + w."""
    decay: Literal["A_log", "negative_rate"] = "A_log"
    """`negative_rate`: what stands under `A_log` is −exp(A_log)."""
    v_heads: Literal["grouped", "tiled"] = "grouped"
    """Order of DeltaNet value heads: grouped, head j uses key head j // (nv / nk); tiled, key head j % nk."""
    conv: Literal["C1K", "CK1", "CK"] = "C1K"
    """Axes of `conv1d.weight`."""


PUBLISHED = Conventions()
"""The layout of the published checkpoints."""
MLX = Conventions(norm_offset=0.0, conv="CK1")
"""Exports of MLX: norms already shifted by one, convolution with channels last."""
GGUF = Conventions(norm_offset=0.0, decay="negative_rate", v_heads="tiled", conv="CK")
"""What the conversion to GGUF makes of a published checkpoint."""


def export_conventions(
    files: Sequence[SafetensorsFile], tensors: Mapping[str, TensorSpec], kernel: int
) -> tuple[Conventions, Conventions]:
    """(the trunk's, the MTP layer's) of some safetensors files and their `tensors` by canonical name.

    An MTP layer in a file without layers of the trunk may come from another export, and is judged by that file alone.
    Raises CheckpointError if the convolutions contradict each other.
    """
    trunk = _conventions(tensors.values(), kernel, [file.metadata for file in files])
    fc = tensors.get("mtp.fc.weight")
    own = next((file for file in files if fc is not None and file.path is fc.file), None)
    if own is None or any(spec.name.startswith("layers.") for spec in own.tensors.values()):
        return trunk, trunk
    return trunk, _conventions((), kernel, [own.metadata])


def _conventions(tensors: Iterable[TensorSpec], kernel: int, metadata: Iterable[Mapping[str, str]]) -> Conventions:
    """From the shape of the convolutions; without any, MLX's if `__metadata__` says `format: mlx`.

    The values of norms are never looked at: means near zero occur on both sides.
    """
    axes: dict[Literal["C1K", "CK1", "CK"], TensorSpec] = {}
    for spec in tensors:
        if spec.name.endswith("linear_attn.conv1d.weight"):
            if len(spec.shape) == 2:
                axes.setdefault("CK", spec)
            elif len(spec.shape) == 3 and spec.shape[1:] == (kernel, 1):
                axes.setdefault("CK1", spec)
            else:
                axes.setdefault("C1K", spec)
    if len(axes) > 1:
        first, second = list(axes.values())[:2]
        raise CheckpointError(
            f"The checkpoint mixes two exports: {first.where} has shape {list(first.shape)}, "
            f"{second.where} {list(second.shape)}; get it again from one source."
        )
    if not axes:
        return MLX if any(table.get("format") == "mlx" for table in metadata) else PUBLISHED
    (only,) = axes
    return MLX if only == "CK1" else Conventions(conv=only)
