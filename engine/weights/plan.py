"""What a checkpoint will need and how fast it should run under a memory budget: from headers only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psutil

from engine.kernels.kv_types import KV_TYPES, KvType
from engine.weights.allocation import Allocation, allocate, minimum_budget
from engine.weights.prediction import Machine, Prediction, predict
from engine.weights.sizes import Placement, place
from engine.weights.units import USUAL_DRAFTS

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.config import ModelConfig
    from engine.files.sidecar import Sidecar

_RECORDED_STATES = 2
"""Recurrent states kept per layer: the current one, and the one that a refused draft goes back to."""
_RECORDED_ROWS = 15
AUTO_MARGIN = 0.15
"""Share of the available memory that an automatic budget leaves alone."""
USUAL_CONTEXT = 32_768
"""Positions for which an automatic budget leaves memory: few conversations fill a context of 262,144."""


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """One cell of the residency strip."""

    name: str
    nbytes: int
    """In memory, without routed experts."""
    experts_nbytes: int
    uses: float
    """Per round."""
    resident: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How a budget would be spent, and what to expect."""

    budget: int | None
    """Bytes for weights; None keeps everything."""
    minimum: int
    """The smallest budget that works."""
    everything: int
    """Bytes that keeping everything takes."""
    resident_bytes: int
    ring_bytes: int
    cache_bytes: int
    session_bytes: int
    """KV caches and recurrent states of one conversation that fills the context; not part of the budget."""
    context: int
    kv_cache: str
    """What keys and values are stored as."""
    fitting_context: int
    """Positions of a conversation that fit beside the whole budget into the memory that is free now, up to the model's
    limit."""
    units: tuple[PlannedUnit, ...]
    """In execution order."""
    predictions: tuple[Prediction, ...]
    """By draft length; empty if the speed of the disk is not known."""

    @property
    def streams(self) -> bool:
        """Something is read from disk while the model runs."""
        return self.resident_bytes < self.everything

    @property
    def total_bytes(self) -> int:
        """All of the budget that is used."""
        return self.resident_bytes + self.ring_bytes + self.cache_bytes

    @property
    def best(self) -> Prediction | None:
        """The draft length with the most expected tokens per second."""
        return max(self.predictions, key=lambda p: p.tokens_per_s, default=None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"streams": self.streams, "total_bytes": self.total_bytes}


def make_plan(
    checkpoint: Checkpoint,
    sidecar: Sidecar | None = None,
    *,
    budget: int | None = None,
    context: int | None = None,
    draft_tokens: int = USUAL_DRAFTS,
    machine: Machine | None = None,
    split_heads: bool = False,
    kv: KvType = KV_TYPES["f32"],
) -> Plan:
    """Plan a budget in bytes (None: everything) for conversations of `context` tokens (None: the model's limit).

    `split_heads` as for `open_weights`; `kv` is what keys and values will be stored as.

    Raises:
        OptionError: the budget is below `Plan.minimum`.
        CheckpointError: a tensor is missing.
    """
    return Planner(checkpoint, sidecar, draft_tokens, split_heads=split_heads, kv=kv).plan(budget, context, machine)


class Planner:
    """Plans any number of budgets for one checkpoint; what depends on the headers alone is worked out once."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        sidecar: Sidecar | None,
        draft_tokens: int = USUAL_DRAFTS,
        *,
        split_heads: bool,
        kv: KvType = KV_TYPES["f32"],
    ) -> None:
        """`split_heads` as for `open_weights`, `kv` as for `make_plan`. Raises CheckpointError."""
        self.config = checkpoint.config
        self.kv = kv
        self._whole = place(checkpoint, sidecar, draft_tokens)
        self._split = place(checkpoint, sidecar, draft_tokens, split_heads=True) if split_heads else self._whole

    @property
    def minimum(self) -> int:
        """The smallest budget that works."""
        return minimum_budget(self._split.sizes)

    @property
    def everything(self) -> int:
        """Bytes that keeping everything takes."""
        return self._whole.sizes.everything

    def plan(self, budget: int | None = None, context: int | None = None, machine: Machine | None = None) -> Plan:
        """See `make_plan`. Raises OptionError."""
        placement = self._whole if budget is None or budget >= self.everything else self._split
        allocation = allocate(placement.sizes, budget)
        positions = min(context or self.config.context, self.config.context)
        with_mtp = "mtp" in placement.layouts
        free = psutil.virtual_memory().available - allocation.total
        return Plan(
            budget=budget,
            minimum=self.minimum,
            everything=placement.sizes.everything,
            resident_bytes=allocation.resident_bytes,
            ring_bytes=allocation.ring_bytes,
            cache_bytes=allocation.cache_bytes,
            session_bytes=session_bytes(self.config, positions, with_mtp=with_mtp, kv=self.kv),
            context=positions,
            kv_cache=self.kv.name,
            fitting_context=min(self.config.context, fitting_context(self.config, free, with_mtp=with_mtp, kv=self.kv)),
            units=_units(placement, allocation),
            predictions=predict(placement, allocation, machine) if machine is not None else (),
        )


def automatic_budget(
    config: ModelConfig, context: int | None = None, held: int = 0, kv: KvType = KV_TYPES["f32"]
) -> int:
    """Bytes for weights that the memory free now allows, when a conversation of usual length is to fit beside them.

    `held`: bytes in use that will be given back, such as those of the weights whose budget is to change.
    """
    positions = min(context or config.context, config.context, USUAL_CONTEXT)
    session = session_bytes(config, positions, with_mtp=config.mtp_layers > 0, kv=kv)
    return auto_budget(psutil.virtual_memory().available + held, session)


def auto_budget(available: int, session: int) -> int:
    """Bytes for weights when `available` bytes of memory are free and a conversation takes `session` of them."""
    return max(0, int(available * (1 - AUTO_MARGIN)) - session)


def session_bytes(config: ModelConfig, positions: int, *, with_mtp: bool, kv: KvType = KV_TYPES["f32"]) -> int:
    """Memory of one conversation: keys and values of every attention layer, and recurrent states in float32."""
    channels = config.conv_channels
    state = config.linear_v_heads * config.linear_k_dim * config.linear_v_dim
    taps = (config.conv_kernel - 1 + _RECORDED_ROWS) * channels
    gates = 2 * _RECORDED_ROWS * config.linear_v_heads
    recurrent = config.layers.count("linear") * (_RECORDED_STATES * state + taps + gates)
    return position_bytes(config, with_mtp=with_mtp, kv=kv) * positions + 4 * recurrent


def position_bytes(config: ModelConfig, *, with_mtp: bool, kv: KvType = KV_TYPES["f32"]) -> int:
    """Memory of one position: its keys and values in every attention layer."""
    attention = config.layers.count("full") + (1 if with_mtp else 0)
    return attention * 2 * config.kv_heads * kv.row_bytes(config.head_dim)


def fitting_context(config: ModelConfig, nbytes: int, *, with_mtp: bool, kv: KvType = KV_TYPES["f32"]) -> int:
    """How many positions a conversation may have in so many bytes."""
    left = nbytes - session_bytes(config, 0, with_mtp=with_mtp, kv=kv)
    return max(0, left) // max(1, position_bytes(config, with_mtp=with_mtp, kv=kv))


def _units(placement: Placement, allocation: Allocation) -> tuple[PlannedUnit, ...]:
    return tuple(
        PlannedUnit(
            unit.name,
            placement.layouts[unit.name].nbytes,
            unit.parts_nbytes,
            unit.uses,
            unit.name in allocation.resident,
        )
        for unit in placement.units
    )
