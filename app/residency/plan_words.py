"""A plan in words: how the budget would be spent, and what speed to expect. No widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.language import tr, trn
from app.library.choice import size_text
from app.residency.glance import speed_text

if TYPE_CHECKING:
    from engine import BudgetRange, Machine, Plan, PlannedUnit


def budget_text(plan: Plan) -> str:
    """The budget of a plan, against everything."""
    if not plan.streams:
        return tr("Everything: {size}", size=size_text(plan.everything))
    return tr("{size} of {everything}", size=size_text(plan.budget or 0), everything=size_text(plan.everything))


def spent(plan: Plan) -> str:
    """What the memory would hold."""
    if not plan.streams:
        return tr("All weights stay in memory; nothing is read from disk while the model runs.")
    kept = sum(unit.resident for unit in plan.units)
    parts = [
        trn(
            "{kept} of {n} unit stays in memory ({size})",
            "{kept} of {n} units stay in memory ({size})",
            len(plan.units),
            kept=kept,
            size=size_text(plan.resident_bytes),
        )
    ]
    if plan.ring_bytes:
        parts.append(tr("the others pass through {size}", size=size_text(plan.ring_bytes)))
    if plan.cache_bytes:
        parts.append(tr("{size} keep the experts of late", size=size_text(plan.cache_bytes)))
    return ", ".join(parts) + "."


def beside(plan: Plan) -> str:
    """What a conversation takes on top of the budget."""
    size = size_text(plan.session_bytes)
    if plan.kv_cache == "f32":
        return trn(
            "A conversation of {n:,} token takes {size} more.",
            "A conversation of {n:,} tokens takes {size} more.",
            plan.context,
            size=size,
        )
    return trn(
        "A conversation of {n:,} token takes {size} more with keys and values stored as {format}.",
        "A conversation of {n:,} tokens takes {size} more with keys and values stored as {format}.",
        plan.context,
        size=size,
        format=plan.kv_cache,
    )


def expected(plan: Plan) -> str:
    """The prediction in a sentence; empty without one."""
    best = plan.best
    if best is None:
        return ""
    speeds = {"speed": _tokens(best.tokens_per_s), "plain": _tokens(plan.predictions[0].tokens_per_s)}
    read = size_text(best.read_bytes)
    if best.draft_tokens == 0 and best.read_bytes:
        return tr(
            "About {plain} tokens/s without drafts, which would not pay; {read} are read each round.",
            read=read,
            **speeds,
        )
    if best.draft_tokens == 0:
        return tr("About {plain} tokens/s without drafts, which would not pay.", **speeds)
    if best.read_bytes:
        return trn(
            "About {speed} tokens/s with {n} draft a round, {plain} without; {read} are read each round.",
            "About {speed} tokens/s with {n} drafts a round, {plain} without; {read} are read each round.",
            best.draft_tokens,
            read=read,
            **speeds,
        )
    return trn(
        "About {speed} tokens/s with {n} draft a round, {plain} without.",
        "About {speed} tokens/s with {n} drafts a round, {plain} without.",
        best.draft_tokens,
        **speeds,
    )


def assumed(machine: Machine) -> str:
    """What the prediction rests on."""
    return tr(
        "Estimated with the disk at {disk}, as measured, memory at {memory} and {share:.0f} % of drafts accepted.",
        disk=speed_text(machine.read_bytes_per_s),
        memory=speed_text(machine.memory_bytes_per_s),
        share=100 * machine.acceptance,
    )


def automatic_text(plans: BudgetRange) -> str:
    """What an automatic budget comes to now."""
    plan = plans.automatic
    if not plan.streams:
        return tr("Automatic (everything)")
    return tr("Automatic ({size})", size=size_text(plan.budget or 0))


def unit_details(unit: PlannedUnit) -> str:
    """Size and use of a unit, for its tooltip."""
    size, experts = size_text(unit.nbytes), size_text(unit.experts_nbytes)
    if not unit.experts_nbytes:
        return tr("{size}, used {uses:g} × a round", size=size, uses=unit.uses)
    return tr("{size} and {experts} of experts, used {uses:g} × a round", size=size, experts=experts, uses=unit.uses)


def _tokens(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.1f}" if per_s >= 1 else f"{per_s:.2f}"
