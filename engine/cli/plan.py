"""A plan for a memory budget, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.weights.plan import Plan, PlannedUnit
    from engine.weights.prediction import Machine, Prediction


def planned_json(plan: Plan, machine: Machine) -> dict[str, Any]:
    """The plan, and what its predictions rest on."""
    best = plan.best
    return plan.as_dict() | {
        "machine": asdict(machine),
        "best_draft_tokens": None if best is None else best.draft_tokens,
    }


def plan_lines(plan: Plan, machine: Machine) -> list[str]:
    """How the budget is spent, unit by unit, and what every draft length should cost."""
    budget = "everything" if plan.budget is None else size(plan.budget)
    kept = "streams from disk" if plan.streams else "keeps everything in memory"
    table = [
        ("memory budget", f"{budget}: {kept}"),
        ("possible", f"{size(plan.minimum)} … {size(plan.everything)}"),
        ("always in memory", size(plan.resident_bytes)),
        ("passing through", size(plan.ring_bytes) if plan.ring_bytes else ""),
        ("expert cache", size(plan.cache_bytes) if plan.cache_bytes else ""),
        ("conversation", _conversation(plan)),
        *_units(plan),
    ]
    lines = [f"{name:<18}{value}" for name, value in table if value]
    if plan.predictions:
        lines += ["", *_predictions(plan, machine)]
    return lines


def _conversation(plan: Plan) -> str:
    fits = "they fit" if plan.fitting_context >= plan.context else f"{plan.fitting_context:,} fit"
    return (
        f"{size(plan.session_bytes)} for {plan.context:,} positions with a KV cache of {plan.kv_cache}, beside the"
        f" budget; {fits} into the memory that is free"
    )


def _units(plan: Plan) -> Iterator[tuple[str, str]]:
    """Name and fate of each unit, runs of equal ones as one line."""

    def alike(unit: PlannedUnit) -> tuple[str, str, int, bool]:
        return unit.name.split(".")[0], size(unit.nbytes), unit.experts_nbytes, unit.resident

    for _, group in groupby(plan.units, alike):
        units = list(group)
        first, last = units[0], units[-1]
        name = first.name if first is last else f"{first.name}…{last.name.split('.')[-1]}"
        where = "in memory" if first.resident else "from disk"
        each = "" if first is last else " each"
        experts = f" + experts {size(first.experts_nbytes)}" if first.experts_nbytes else ""
        if experts and plan.cache_bytes:
            experts += " through the cache"
        yield f"unit {name}", f"{where:<11}{size(first.nbytes)}{experts}{each}, {first.uses:g} × a round"


def _predictions(plan: Plan, machine: Machine) -> Iterator[str]:
    yield (
        f"Expected with the disk at {machine.read_bytes_per_s / 1e9:.2f} GB/s, memory at"
        f" {machine.memory_bytes_per_s / 1e9:.0f} GB/s and {100 * machine.acceptance:.0f} % of drafts accepted:"
    )
    yield "drafts  read/round    reading  computing  round      tokens/s"
    best = plan.best
    for p in plan.predictions:
        yield _row(p) + ("  best" if p == best else "")


def _row(p: Prediction) -> str:
    return (
        f"{p.draft_tokens:>6}  {size(p.read_bytes):>10}  {p.read_s:>7.3f} s  {p.compute_s:>7.3f} s  {p.round_s:>6.3f} s"
        f"  {p.tokens_per_s:>8.2f}"
    )


def size(nbytes: int) -> str:
    """Bytes for people, in binary units."""
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
