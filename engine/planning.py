"""What a checkpoint needs and how fast it should run under a memory budget, before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.cancel import CancelToken
from engine.demo import resolve
from engine.errors import OptionError
from engine.files.checkpoint import open_checkpoint
from engine.files.sidecar import open_sidecar
from engine.kv_cache import kv_type_for
from engine.options import KvCache, MemoryBudget
from engine.weights.memory_speed import measure_memory_speed
from engine.weights.plan import Plan, Planner, automatic_budget
from engine.weights.prediction import Machine
from engine.weights.speed import measure_read_speed
from engine.weights.units import USUAL_DRAFTS


@dataclass(frozen=True, slots=True)
class BudgetRange:
    """Plans for budgets from the smallest that works up to everything."""

    path: Path
    machine: Machine
    plans: tuple[Plan, ...]
    """With growing budgets; the last one keeps everything."""
    automatic: Plan
    """What the budget `auto` comes to now."""

    def nearest(self, budget: int | None) -> int:
        """Index of the largest plan within `budget` bytes (None: everything); 0 if there is none."""
        if budget is None:
            return len(self.plans) - 1
        within = [i for i, plan in enumerate(self.plans) if plan.total_bytes <= budget]
        return max(within, default=0)


def open_planner(
    path: str | Path, sidecar: str | Path | None = None, *, draft_tokens: int = USUAL_DRAFTS, kv_cache: KvCache = "f32"
) -> Planner:
    """Read the headers of a checkpoint (or `demo`) and be ready to plan any budget for it.

    Raises:
        CheckpointError, SidecarError: a file is missing, damaged, or does not fit.
        OptionError: the KV cache cannot be stored as `kv_cache`.
    """
    checkpoint = open_checkpoint(resolve(path))
    kv = kv_type_for(checkpoint, kv_cache)
    extra = None if sidecar is None else open_sidecar(sidecar, checkpoint.config)
    return Planner(checkpoint, extra, draft_tokens, split_heads=True, kv=kv)


def measure_machine(path: str | Path, cancel: CancelToken | None = None) -> Machine:
    """How fast the disk under a checkpoint delivers (half a gigabyte at most is read, in less than a second), and how
    fast memory is.

    Raises:
        CheckpointError: the checkpoint cannot be opened.
        ReadError: its largest file cannot be read.
        Cancelled.
    """
    largest = max(open_checkpoint(resolve(path)).files, key=lambda file: file.stat().st_size)
    from engine.kernels.cpu import physical_cores

    read = measure_read_speed(largest, cancel=cancel)
    return Machine(read.bytes_per_s, measure_memory_speed(physical_cores()))


def plan_for(
    path: str | Path,
    sidecar: str | Path | None = None,
    *,
    budget: MemoryBudget = "auto",
    context: int | None = None,
    draft_tokens: int = USUAL_DRAFTS,
    kv_cache: KvCache = "f32",
    machine: Machine | None = None,
) -> Plan:
    """Plan one budget. Without `machine` there are no predictions.

    Raises:
        OptionError: the budget is too small for this model, or the KV cache cannot be stored as `kv_cache`.
        CheckpointError, SidecarError: a file is missing, damaged, or does not fit.
    """
    planner = open_planner(path, sidecar, draft_tokens=draft_tokens, kv_cache=kv_cache)
    nbytes = automatic_budget(planner.config, context, kv=planner.kv) if budget == "auto" else budget
    return planner.plan(nbytes, context, machine)


def plan_range(
    path: str | Path,
    sidecar: str | Path | None = None,
    *,
    steps: int = 40,
    context: int | None = None,
    draft_tokens: int = USUAL_DRAFTS,
    kv_cache: KvCache = "f32",
    machine: Machine | None = None,
    held: int = 0,
    cancel: CancelToken | None = None,
) -> BudgetRange:
    """Plan `steps` budgets at once, measuring the disk unless `machine` is given. `held` bytes of memory, those of a
    model that is loaded, count as free for the automatic budget.

    Raises: as `plan_for` and `measure_machine`.
    """
    if steps < 2:
        raise OptionError(f"There must be at least 2 budgets to plan, not {steps}.")
    planner = open_planner(path, sidecar, draft_tokens=draft_tokens, kv_cache=kv_cache)
    machine = machine or measure_machine(path, cancel)
    span = planner.everything - planner.minimum
    budgets: list[int | None] = [planner.minimum + i * span // (steps - 1) for i in range(steps - 1)]
    plans = [planner.plan(budget, context, machine) for budget in [*budgets, None]]
    free = automatic_budget(planner.config, context, held, planner.kv)
    automatic = planner.plan(max(planner.minimum, free), context, machine)
    return BudgetRange(Path(path), machine, tuple(plans), automatic)
