"""A checkpoint seen from memory: its units, how each would lie in a buffer, and what everything would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.weights.allocation import Sizes
from engine.weights.embedding import scratch_bytes
from engine.weights.expert_cache import Parts, slot_bytes
from engine.weights.ranges import ByteRange, Layout, lay_out
from engine.weights.roles import VECTOR_ROLES, Role, role_of
from engine.weights.units import EMBEDDING, MTP_EMBEDDING, Unit, build_units, execution_order, tensors_in_use

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.conventions import Conventions
    from engine.files.sidecar import Sidecar
    from engine.files.tensor_spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Placement:
    """Everything about a checkpoint's weights that follows from its headers."""

    units: tuple[Unit, ...]
    by_name: Mapping[str, Unit]
    order: tuple[str, ...]
    """Units as one round is expected to use them."""
    specs: Mapping[str, TensorSpec]
    """Tensors in use by plain canonical name."""
    layouts: Mapping[str, Layout]
    """How each unit lies in memory, without its experts."""
    parts: Parts
    conventions: Conventions
    mtp_conventions: Conventions
    tied: bool
    """The head is the embedding table."""
    tables: tuple[str, ...]
    """Embedding tables that are no head: each a buffer of its own where everything is resident."""
    experts_per_token: int
    sizes: Sizes

    def unit(self, name: str) -> Unit:
        """Raises KeyError."""
        return self.by_name[name]

    def resident_layout(self, name: str, with_experts: bool) -> Layout:
        """How a resident unit (or the embedding table) lies in its buffer; experts follow the unit's tensors."""
        if name in self.tables:
            return lay_out([_range(self.specs[name])])
        unit = self.unit(name)
        if not (with_experts and unit.parts):
            return self.layouts[name]
        return lay_out([*unit.ranges, *(tensor.range for part in unit.parts for tensor in part.tensors)])


def place(
    checkpoint: Checkpoint, sidecar: Sidecar | None, draft_tokens: int, *, split_heads: bool = False
) -> Placement:
    """Headers only: nothing is read."""
    specs = tensors_in_use(checkpoint, sidecar)
    units = build_units(checkpoint, sidecar, draft_tokens=draft_tokens, split_heads=split_heads)
    layouts = {unit.name: lay_out(unit.ranges) for unit in units}
    parts = {unit.name: {part.expert: part for part in unit.parts} for unit in units if unit.parts}
    head = specs.get("lm_head.weight", specs[EMBEDDING])
    tied = (head.file, head.offset) == (specs[EMBEDDING].file, specs[EMBEDDING].offset)
    tables = [n for n in (EMBEDDING, MTP_EMBEDDING) if n in specs and not (tied and n == EMBEDDING)]
    return Placement(
        units,
        {unit.name: unit for unit in units},
        execution_order(units, draft_tokens),
        specs,
        layouts,
        parts,
        checkpoint.conventions,
        sidecar.conventions if sidecar is not None else checkpoint.mtp_conventions,
        tied,
        tuple(tables),
        checkpoint.config.experts_per_token,
        Sizes(
            units={name: layout.nbytes for name, layout in layouts.items()},
            uses={unit.name: unit.uses for unit in units},
            experts=_experts_bytes(units, layouts),
            expert_slot=slot_bytes(parts),
            expert_count=sum(len(experts) for experts in parts.values()),
            tables=sum(lay_out([_range(specs[name])]).nbytes for name in tables),
            vectors=sum(4 * s.elements for n, s in specs.items() if role_of(n) in VECTOR_ROLES | {Role.SCALE}),
            scratch=sum(scratch_bytes(specs[name]) for name in (EMBEDDING, MTP_EMBEDDING) if name in specs),
        ),
    )


def place_for(
    checkpoint: Checkpoint, sidecar: Sidecar | None, draft_tokens: int, budget: int | None, *, split_heads: bool
) -> Placement:
    """The placement for a budget: heads stay whole where everything fits, and are split as asked where it does not."""
    whole = place(checkpoint, sidecar, draft_tokens)
    if not split_heads or budget is None or budget >= whole.sizes.everything:
        return whole
    return place(checkpoint, sidecar, draft_tokens, split_heads=True)


def _experts_bytes(units: tuple[Unit, ...], layouts: Mapping[str, Layout]) -> int:
    """What all experts add when everything is resident."""
    added = 0
    for unit in units:
        if unit.parts:
            ranges = [*unit.ranges, *(tensor.range for part in unit.parts for tensor in part.tensors)]
            added += lay_out(ranges).nbytes - layouts[unit.name].nbytes
    return added


def _range(spec: TensorSpec) -> ByteRange:
    return ByteRange(spec.file, spec.offset, spec.nbytes)
