"""A plan in words: how the budget would be spent, and what speed to expect. No widgets, no Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.library.choice import size_text
from app.residency.glance import speed_text

if TYPE_CHECKING:
    from engine import BudgetRange, Machine, Plan, PlannedUnit


def budget_text(plan: Plan) -> str:
    """The budget of a plan, against everything."""
    if not plan.streams:
        return f"Everything: {size_text(plan.everything)}"
    return f"{size_text(plan.budget or 0)} of {size_text(plan.everything)}"


def spent(plan: Plan) -> str:
    """What the memory would hold."""
    if not plan.streams:
        return "All weights stay in memory; nothing is read from disk while the model runs."
    kept = sum(unit.resident for unit in plan.units)
    parts = [f"{kept} of {len(plan.units)} units stay in memory ({size_text(plan.resident_bytes)})"]
    if plan.ring_bytes:
        parts.append(f"the others pass through {size_text(plan.ring_bytes)}")
    if plan.cache_bytes:
        parts.append(f"{size_text(plan.cache_bytes)} keep the experts of late")
    return ", ".join(parts) + "."


def beside(plan: Plan) -> str:
    """What a conversation takes on top of the budget."""
    stored = "" if plan.kv_cache == "f32" else f" with keys and values stored as {plan.kv_cache}"
    return f"A conversation of {plan.context:,} tokens takes {size_text(plan.session_bytes)} more{stored}."


def expected(plan: Plan) -> str:
    """The prediction in a sentence; empty without one."""
    best = plan.best
    if best is None:
        return ""
    plain = plan.predictions[0]
    reads = f"; {size_text(best.read_bytes)} are read each round" if best.read_bytes else ""
    if best.draft_tokens == 0:
        return f"About {_tokens(plain.tokens_per_s)} tokens/s without drafts, which would not pay{reads}."
    drafts = f"{best.draft_tokens} draft{'s' if best.draft_tokens > 1 else ''} a round"
    return f"About {_tokens(best.tokens_per_s)} tokens/s with {drafts}, {_tokens(plain.tokens_per_s)} without{reads}."


def assumed(machine: Machine) -> str:
    """What the prediction rests on."""
    return (
        f"Estimated with the disk at {speed_text(machine.read_bytes_per_s)}, as measured, memory at"
        f" {speed_text(machine.memory_bytes_per_s)} and {100 * machine.acceptance:.0f} % of drafts accepted."
    )


def automatic_text(plans: BudgetRange) -> str:
    """What an automatic budget comes to now."""
    plan = plans.automatic
    return "Automatic (everything)" if not plan.streams else f"Automatic ({size_text(plan.budget or 0)})"


def unit_details(unit: PlannedUnit) -> str:
    """Size and use of a unit, for its tooltip."""
    experts = f" and {size_text(unit.experts_nbytes)} of experts" if unit.experts_nbytes else ""
    return f"{size_text(unit.nbytes)}{experts}, used {unit.uses:g} × a round"


def _tokens(per_s: float) -> str:
    return f"{per_s:.0f}" if per_s >= 10 else f"{per_s:.1f}" if per_s >= 1 else f"{per_s:.2f}"
