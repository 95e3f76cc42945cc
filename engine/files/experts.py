"""Where each routed expert's matrices are, however the file arranges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import TensorSpec

PACKED = (("gate_up_proj", "down_proj"), ("gate_proj", "up_proj", "down_proj"))
"""Arrangements of tensors with one slice per expert: `experts.X` [E, rows, columns]."""
SINGLE = ("gate_proj", "up_proj", "down_proj")
"""One tensor per expert and matrix: `experts.3.gate_proj.weight`."""


@dataclass(frozen=True, slots=True)
class ExpertLayout:
    """The experts of one layer. `prefix` is `layers.3.mlp.experts` or `mtp.layers.0.mlp.experts`."""

    prefix: str
    count: int
    parts: tuple[str, ...]
    """Matrices of an expert: `gate_up_proj` (gate rows first) and `down_proj`, or the three apart."""
    packed: bool
    tensors: Mapping[str, TensorSpec]

    def expert(self, index: int) -> dict[str, TensorSpec]:
        """The matrices of one expert by part name, [rows, columns] each; an FP8 part has its scales beside it, as
        part + `_scale_inv`."""
        found = {}
        for part in self.parts:
            name = f"{self.prefix}.{part}" if self.packed else f"{self.prefix}.{index}.{part}.weight"
            found[part] = self._slice(self.tensors[name], index)
            scale = self.tensors.get(name + SCALE_SUFFIX)
            if scale is not None:
                found[part + SCALE_SUFFIX] = self._slice(scale, index)
        return found

    def _slice(self, spec: TensorSpec, index: int) -> TensorSpec:
        if not self.packed or len(spec.shape) < 3:
            return spec
        stride = spec.nbytes // self.count
        return replace(
            spec,
            name=f"{self.prefix}.{index}.{spec.name[len(self.prefix) + 1 :]}",
            shape=spec.shape[1:],
            offset=spec.offset + index * stride,
            nbytes=stride,
        )


def expert_layout(tensors: Mapping[str, TensorSpec], prefix: str, count: int) -> ExpertLayout:
    """How the experts under `prefix` are stored. Without any of them the published packed form is assumed, so that a
    check against it names what is missing."""
    for parts in PACKED:
        if f"{prefix}.{parts[0]}" in tensors:
            return ExpertLayout(prefix, count, parts, True, tensors)
    if f"{prefix}.0.gate_proj.weight" in tensors:
        return ExpertLayout(prefix, count, SINGLE, False, tensors)
    return ExpertLayout(prefix, count, PACKED[0], True, tensors)
