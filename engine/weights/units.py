"""Streaming units: what is read together, how often a round uses it, and which parts of it are read on demand.

One unit per layer (`layers.N`), the `head`, the `mtp` layer, and the sidecar's trimmed `draft_head`. The routed experts
of a mixture-of-experts layer are parts of its unit. Embedding rows are no unit: they are read one by one
(`embedding.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.errors import CheckpointError
from engine.weights.ranges import ByteRange
from engine.weights.roles import STORED_FORMS, Role, plain_name, role_of

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.sidecar import Sidecar
    from engine.files.tensor_spec import TensorSpec

FP8_BLOCK = 128
"""Rows and columns that share one scale of an FP8 matrix."""
EMBEDDING = "embed_tokens.weight"
MTP_EMBEDDING = "mtp.embed_tokens.weight"
USUAL_DRAFTS = 3
"""Tokens that the MTP layer is expected to draft a round, where nothing else is known."""
_HEADS = {"head": "lm_head.weight", "draft_head": "mtp.lm_head.weight"}
_PACKED_EXPERTS = re.compile(r"mlp\.experts\.(gate_up_proj|gate_proj|up_proj|down_proj)(\.weight)?")
_ONE_EXPERT = re.compile(r"mlp\.experts\.(\d+)\.(gate_up_proj|gate_proj|up_proj|down_proj)\.weight")


@dataclass(frozen=True, slots=True)
class UnitTensor:
    """One matrix of a unit: its name without the unit's prefix, and the byte range that holds its rows."""

    name: str
    format: str
    rows: int
    cols: int
    range: ByteRange
    scale: str | None = None
    """FP8: full canonical name of its block scales."""
    scale_index: int | None = None
    """FP8 experts that are packed: which of the packed scales."""
    scale_rows: tuple[int, int] | None = None
    """FP8 matrices that are a run of rows of a stored one: which rows of its scales are theirs."""


@dataclass(frozen=True, slots=True)
class Part:
    """The matrices of one routed expert."""

    expert: int
    tensors: tuple[UnitTensor, ...]

    @property
    def nbytes(self) -> int:
        return sum(t.range.nbytes for t in self.tensors)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read together. `tensors` is needed whenever the unit is; of `parts`, those that a router picks."""

    name: str
    tensors: tuple[UnitTensor, ...]
    parts: tuple[Part, ...] = ()
    uses: float = 1.0
    """Expected uses per round of speculative decoding."""

    @property
    def nbytes(self) -> int:
        """Bytes on disk without the parts."""
        return sum(t.range.nbytes for t in self.tensors)

    @property
    def parts_nbytes(self) -> int:
        return sum(p.nbytes for p in self.parts)

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        return tuple(t.range for t in self.tensors)


def tensors_in_use(checkpoint: Checkpoint, sidecar: Sidecar | None) -> dict[str, TensorSpec]:
    """Every tensor by plain canonical name: a stored quantised copy instead of the plain one, the sidecar's MTP layer
    instead of the checkpoint's."""
    sources: list[Iterable[TensorSpec]] = [checkpoint.tensors.values()]
    if sidecar is not None:
        sources = [(s for s in checkpoint.tensors.values() if not s.name.startswith("mtp.")), sidecar.tensors.values()]
    chosen: dict[str, TensorSpec] = {}
    for spec in (spec for source in sources for spec in source):
        plain = plain_name(spec.name)
        if plain not in chosen or spec.name.endswith(STORED_FORMS):
            chosen[plain] = spec
    return chosen


def build_units(
    checkpoint: Checkpoint,
    sidecar: Sidecar | None = None,
    *,
    draft_tokens: int = USUAL_DRAFTS,
    split_heads: bool = False,
) -> tuple[Unit, ...]:
    """The units in execution order: layers, head, then the MTP layer and the trimmed head if there are any.

    `draft_tokens` is the expected number of drafts a round, which decides how often the drafting units are used: never
    if it is 0.
    `split_heads` cuts heads that are larger than every layer into pieces of rows (`head.0`, `head.1`, …), units of
    their own, so that a head of a gigabyte can be streamed in little memory.

    Raises:
        CheckpointError: a layer without a matrix, or no table for the head.
    """
    specs = tensors_in_use(checkpoint, sidecar)
    groups: dict[str, dict[str, TensorSpec]] = {}
    for name, spec in specs.items():
        unit, inner = _unit_of(name)
        if unit:
            groups.setdefault(unit, {})[inner] = spec
    drafting = draft_tokens + 0.5 if draft_tokens else 0.0
    units = []
    for index in range(len(checkpoint.config.layers)):
        name = f"layers.{index}"
        if name not in groups:
            raise CheckpointError(f"{checkpoint.name} has no tensors for layer {index}; the file is incomplete.")
        units.append(_build(name, groups[name], specs, uses=1.0))
    has_mtp = "mtp" in groups
    has_draft_head = has_mtp and "draft_head" in groups
    head_uses = 1.0 + (drafting if has_mtp and not has_draft_head else 0.0)
    largest = max(unit.nbytes for unit in units) if split_heads else None
    units += _pieces(_head(checkpoint, specs, head_uses), largest)
    if has_mtp:
        units.append(_build("mtp", groups["mtp"], specs, uses=drafting))
    if has_draft_head:
        units += _pieces(_build("draft_head", groups["draft_head"], specs, uses=drafting), largest)
    return tuple(units)


def execution_order(units: Iterable[Unit], draft_tokens: int) -> tuple[str, ...]:
    """Units as one round uses them: the verification pass, then as many drafting steps as there are draft tokens."""
    names = [unit.name for unit in units]
    verification = [name for name in names if not only_drafting(name)]
    return (*verification, *(drafting_step(names) * draft_tokens))


def drafting_step(names: Sequence[str]) -> list[str]:
    """The units of one drafting step; none without an MTP layer."""
    if "mtp" not in names:
        return []
    groups = {group_of(name) for name in names}
    head = "draft_head" if "draft_head" in groups else "head"
    return ["mtp", *(name for name in names if group_of(name) == head)]


def group_of(name: str) -> str:
    """The whole that a unit is a piece of: `head` for `head.3`; other units are wholes themselves."""
    whole = name.split(".", maxsplit=1)[0]
    return whole if whole in _HEADS else name


def only_drafting(name: str) -> bool:
    """Does only drafting use this unit?"""
    return group_of(name) in ("mtp", "draft_head")


def _unit_of(name: str) -> tuple[str, str]:
    """(unit, name inside it) of a matrix or an expert; ("", "") for everything else."""
    if role_of(name) not in (Role.MATRIX, Role.EXPERT):
        return "", ""
    for unit, tensor in _HEADS.items():
        if name == tensor:
            return unit, "weight"
    if name.startswith("mtp."):
        return "mtp", name.removeprefix("mtp.").removeprefix("layers.0.")
    layer = re.match(r"(layers\.\d+)\.(.+)", name)
    return (layer[1], layer[2]) if layer else ("", "")


def _head(checkpoint: Checkpoint, specs: Mapping[str, TensorSpec], uses: float) -> Unit:
    spec = specs.get("lm_head.weight") or specs.get(EMBEDDING)
    if spec is None:
        raise CheckpointError(f"{checkpoint.name} has neither lm_head.weight nor {EMBEDDING}; the file is incomplete.")
    return _build("head", {"weight": spec}, specs, uses)


def _pieces(head: Unit, largest: int | None) -> list[Unit]:
    """The head in pieces of rows no larger than `largest` bytes, or whole if it is not larger, or `largest` is None."""
    (tensor,) = head.tensors
    if largest is None or head.nbytes <= largest:
        return [head]
    row = tensor.range.nbytes // tensor.rows
    step = max(1, largest // row // FP8_BLOCK) * FP8_BLOCK
    begins = range(0, tensor.rows, step)
    return [
        Unit(f"{head.name}.{i}", (_rows(tensor, begin, min(begin + step, tensor.rows)),), uses=head.uses)
        for i, begin in enumerate(begins)
    ]


def _build(unit: str, inner: Mapping[str, TensorSpec], specs: Mapping[str, TensorSpec], uses: float) -> Unit:
    tensors: list[UnitTensor] = []
    experts: dict[int, list[UnitTensor]] = {}
    for name, spec in inner.items():
        packed, single = _PACKED_EXPERTS.fullmatch(name), _ONE_EXPERT.fullmatch(name)
        if packed:
            for expert in range(spec.shape[0]):
                experts.setdefault(expert, []).extend(_expert(packed[1], _slice(spec, expert, specs)))
        elif single:
            experts.setdefault(int(single[1]), []).extend(_expert(single[2], _whole(name, spec, specs)))
        else:
            tensors.append(_whole(name, spec, specs))
    parts = tuple(Part(expert, tuple(experts[expert])) for expert in sorted(experts))
    return Unit(unit, tuple(sorted(tensors, key=lambda t: t.name)), parts, uses)


def _whole(name: str, spec: TensorSpec, specs: Mapping[str, TensorSpec]) -> UnitTensor:
    rows, cols = (1, spec.shape[0]) if len(spec.shape) == 1 else (spec.shape[0], spec.shape[1])
    scale = _scale_name(spec, specs)
    return UnitTensor(name, spec.format, rows, cols, ByteRange(spec.file, spec.offset, spec.nbytes), scale)


def _slice(spec: TensorSpec, expert: int, specs: Mapping[str, TensorSpec]) -> UnitTensor:
    """Expert `expert` of a tensor [experts, rows, cols]."""
    count, rows, cols = spec.shape
    stride = spec.nbytes // count
    where = ByteRange(spec.file, spec.offset + expert * stride, stride)
    scale = _scale_name(spec, specs)
    return UnitTensor("", spec.format, rows, cols, where, scale, expert if scale else None)


def _expert(projection: str, tensor: UnitTensor) -> Iterable[UnitTensor]:
    """The expert's matrices by the names of a dense feed-forward; gate_up_proj holds the gate's rows, then up's."""
    if projection != "gate_up_proj":
        yield replace(tensor, name=f"{projection}.weight")
        return
    yield replace(_rows(tensor, 0, tensor.rows // 2), name="gate_proj.weight")
    yield replace(_rows(tensor, tensor.rows // 2, tensor.rows), name="up_proj.weight")


def _rows(tensor: UnitTensor, begin: int, end: int) -> UnitTensor:
    """Rows begin … end − 1 of a matrix. With block scales, they begin at the edge of a block."""
    if tensor.scale and begin % FP8_BLOCK:
        raise CheckpointError(
            f"The FP8 scales {tensor.scale} cannot be cut at row {begin}, which is inside a block; get the model in"
            " another format."
        )
    row = tensor.range.nbytes // tensor.rows
    where = ByteRange(tensor.range.file, tensor.range.offset + begin * row, (end - begin) * row)
    scales = (begin // FP8_BLOCK, -(-end // FP8_BLOCK)) if tensor.scale else None
    return replace(tensor, rows=end - begin, range=where, scale_rows=scales)


def _scale_name(spec: TensorSpec, specs: Mapping[str, TensorSpec]) -> str | None:
    if not spec.format.startswith("F8"):
        return None
    name = plain_name(spec.name) + "_scale_inv"
    if name not in specs:
        raise CheckpointError(f"{spec.where} is FP8, but has no block scales ({name}); the file is incomplete.")
    return name
