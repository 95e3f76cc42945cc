"""What a plan should cost per round, before anything is read.

A round with d drafts verifies d + 1 rows in one pass over all layers and the head, and makes d drafting steps of the
MTP layer and the head in use. Reading and computing overlap, so a pass takes as long as the slower of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.options import MAX_DRAFT_TOKENS
from engine.weights.allocation import Allocation
from engine.weights.sizes import Placement
from engine.weights.units import drafting_step, only_drafting

_ROW_COST = 0.47
"""Time of a verification pass per row, as a share of a one-row pass, where arithmetic is the limit."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What predictions rest on."""

    read_bytes_per_s: float
    memory_bytes_per_s: float = 20e9
    """Weights that one pass with one row gets through: the speed of memory, or near it."""
    acceptance: float = 0.6
    """Share of drafts that are accepted."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One draft length."""

    draft_tokens: int
    read_bytes: int
    """From disk, per round."""
    read_s: float
    compute_s: float
    round_s: float
    tokens_per_round: float
    tokens_per_s: float


def predict(placement: Placement, allocation: Allocation, machine: Machine) -> tuple[Prediction, ...]:
    """Draft lengths 0…14, or only 0 where there is no MTP layer."""
    has_mtp = "mtp" in placement.sizes.units
    return tuple(_round(placement, allocation, machine, d) for d in range(MAX_DRAFT_TOKENS + 1 if has_mtp else 1))


def _round(placement: Placement, allocation: Allocation, machine: Machine, drafts: int) -> Prediction:
    sizes = placement.sizes.units
    verify_units = [name for name in sizes if not only_drafting(name)]
    draft_units = drafting_step(list(sizes)) if drafts else []
    experts = [_experts(placement, name, drafts + 1) for name in verify_units]
    draft_experts = drafts * _experts(placement, "mtp", 1) if drafts else 0.0
    streamed = set(allocation.streamed)
    missed = 1 - _cached_share(placement, allocation)
    # Drafting units that are not resident stay in the ring while a round drafts.
    read = sum(sizes[name] for name in {*verify_units, *draft_units} if name in streamed)
    read += round(missed * (sum(experts) + draft_experts))
    verify_bytes = sum(sizes[name] for name in verify_units) + sum(experts)
    draft_bytes = drafts * sum(sizes[name] for name in draft_units) + draft_experts
    verify_s = verify_bytes / machine.memory_bytes_per_s * max(1.0, _ROW_COST * (drafts + 1))
    compute_s = verify_s + draft_bytes / machine.memory_bytes_per_s
    read_s = read / machine.read_bytes_per_s
    tokens = sum(machine.acceptance**i for i in range(drafts + 1))
    round_s = max(compute_s, read_s)
    return Prediction(drafts, read, read_s, compute_s, round_s, tokens, tokens / round_s if round_s > 0 else 0.0)


def _experts(placement: Placement, unit: str, rows: int) -> float:
    """Expected bytes of the routed experts of one pass: the union over its rows, each drawing its own."""
    parts = placement.parts.get(unit)
    if not parts:
        return 0.0
    count = len(parts)
    union = count * (1 - (1 - placement.experts_per_token / count) ** rows)
    return union * sum(part.nbytes for part in parts.values()) / count


def _cached_share(placement: Placement, allocation: Allocation) -> float:
    """Share of the experts that fit into the cache; use is uneven, so the hit rate will be better than this."""
    if allocation.complete or not placement.sizes.expert_count:
        return 1.0
    return min(1.0, allocation.cache_bytes / (placement.sizes.expert_slot * placement.sizes.expert_count))
