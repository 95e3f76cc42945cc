"""Records: what the engine tells the world while it works. The contract between engine and app, and a trace's lines.

All are frozen dataclasses of plain numbers, strings and tuples, so that they can cross threads and be kept without
copying. `to_json` gives one JSON object with an `event` key; `record_from_json` reads it back, ignoring keys that it
does not know.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from engine.errors import TraceError

Phase = Literal["think", "answer"]
Source = Literal["model", "mtp", "ngram"]
Verdict = Literal["accepted", "rejected", "unused"]
Origin = Literal["model", "accepted", "correction", "bonus"]
StopReason = Literal["end", "stop-string", "length", "context", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have come instead, with its probability."""

    token: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """One token that a drafter proposed, and what became of it."""

    token: int
    text: str
    source: Source
    draft_probability: float | None
    """q: the drafter's probability of this token; None where the drafter has none."""
    model_probability: float | None
    """p: the model's probability of this token at this place; None if it was never tested."""
    verdict: Verdict
    """`unused`: after a refusal, or after a stop."""
    replacement: int | None = None
    """The token that the model put in its place, for a rejected one."""
    uniform: float | None = None
    """The random number that decided, when sampling."""
    alternatives: tuple[Alternative, ...] = ()
    """The drafter's most likely tokens at this place."""


@dataclass(frozen=True, slots=True)
class CommittedToken:
    """One token of the reply."""

    token: int
    text: str
    """What this token adds to the reply's text; empty while a character is incomplete."""
    origin: Origin
    """`model`: no draft stood here; `accepted`: a draft; `correction`: replaced a refused draft; `bonus`: after a fully
    accepted run."""
    source: Source
    model_probability: float | None = None
    phase: Phase = "answer"
    alternatives: tuple[Alternative, ...] = ()
    """The model's most likely tokens at this place."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    event: ClassVar[str] = "load"
    stage: str
    """`files`, `weights`, `kernels` or `ready`."""
    message: str
    """A phrase for the person: "preparing kernels for this CPU: 7 of 20"."""
    done: int = 0
    total: int = 0
    unit: str = ""
    """What done and total count: `bytes`, `kernels`, …"""


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    event: ClassVar[str] = "prefill"
    done: int
    total: int
    """Prompt tokens read so far, and in all (reused ones count as read)."""
    reused: int = 0
    """Tokens whose states were still there from earlier turns."""
    seconds: float = 0.0
    stage: str = ""
    """What else is being done, as a phrase for the person: "looking at cat.png: block 3 of 27"."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What weights came from memory and what from disk; all zero where everything is kept in memory."""

    read_s: float = 0.0
    """Time in which at least one read was under way."""
    hits: int = 0
    """Units of the weights (layers, mostly) that were in memory when they were asked for."""
    misses: int = 0
    expert_hits: int = 0
    expert_misses: int = 0
    memory_bytes: int = 0
    """Memory that weights occupied at the end: kept, passing through, and cached."""

    def overlap(self, wait_s: float) -> float | None:
        """Share of the reading time during which computing went on, of which it waited `wait_s`; None if nothing was
        read."""
        return max(0.0, 1 - wait_s / self.read_s) if self.read_s > 0 else None

    def plus(self, later: DiskUse) -> DiskUse:
        """Both together."""
        return DiskUse(
            self.read_s + later.read_s,
            self.hits + later.hits,
            self.misses + later.misses,
            self.expert_hits + later.expert_hits,
            self.expert_misses + later.expert_misses,
            later.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One round of speculative decoding: propose, verify once, keep the accepted prefix and one of the model's own.

    Round 0 of a reply is special: it carries the one token that the prompt's own logits gave. It costs no pass of the
    model, and nothing is drafted in it.
    """

    event: ClassVar[str] = "round"
    index: int
    position: int
    """Position in the context of the first committed token."""
    phase: Phase
    drafts: tuple[DraftedToken, ...]
    committed: tuple[CommittedToken, ...]
    draft_s: float
    verify_s: float
    disk_wait_s: float = 0.0
    bytes_read: int = 0
    draft_length: int = 0
    """Drafts asked for in this round."""
    next_draft_length: int = 0
    note: str = ""
    """Why there were no drafts, if there were none and some were wanted."""
    draft_passes: int = 0
    """Passes of the draft model."""
    disk: DiskUse = DiskUse()


@dataclass(frozen=True, slots=True)
class PositionCount:
    """How often the draft at one position of a round was tested, and accepted."""

    tried: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Stats:
    """A reply in numbers."""

    rounds: int = 0
    target_passes: int = 0
    draft_passes: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    emitted: int = 0
    accepted_histogram: tuple[int, ...] = ()
    """Rounds by number of accepted drafts."""
    per_position: tuple[PositionCount, ...] = ()
    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefill_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    disk_wait_s: float = 0.0
    total_s: float = 0.0
    bytes_read: int = 0
    draft_step_bytes: int = 0
    """Weight bytes that one draft step reads: the MTP layer and the head in use."""
    tokens_per_s: float = 0.0
    tokens_per_round: float = 0.0
    acceptance: float | None = None
    """accepted / tested; None if nothing was tested."""
    stop_reason: StopReason = "end"
    disk: DiskUse = DiskUse()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What the model wants to have done. It is shown, never carried out."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finished:
    event: ClassVar[str] = "finished"
    tokens: tuple[int, ...]
    text: str
    stats: Stats
    notes: tuple[str, ...] = ()
    """Sentences for the person about how the run went ("0 drafts: …")."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Found in the answer, in the template's layout."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The reply ended in an error. What was said so far is kept."""

    event: ClassVar[str] = "failed"
    message: str
    kind: str
    """Class name of the error."""
    tokens: tuple[int, ...] = ()
    text: str = ""
    stats: Stats = field(default_factory=Stats)


Record = LoadProgress | PrefillProgress | Round | Finished | Failed

_BY_EVENT: dict[str, type[Any]] = {c.event: c for c in (LoadProgress, PrefillProgress, Round, Finished, Failed)}


def to_json(record: Record) -> dict[str, Any]:
    """The record as a JSON-serialisable object, `event` first."""
    return {"event": record.event, **dataclasses.asdict(record)}


def record_from_json(data: dict[str, Any]) -> Record:
    """Read back what `to_json` wrote. Unknown keys are ignored, missing ones take their default.

    Raises:
        TraceError: an unknown event, a missing field, or a value of the wrong kind.
    """
    cls = _BY_EVENT.get(str(data.get("event")))
    if cls is None:
        raise TraceError(f"Unknown event {data.get('event')!r}; known are {', '.join(_BY_EVENT)}.")
    record: Record = _build(cls, data)
    return record


def _build(kind: Any, value: Any) -> Any:
    """`value` (plain JSON) as an instance of `kind`, a type annotation of this file."""
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise TraceError(f"{kind.__name__} should be an object, but is {value!r:.80}.")
        hints = typing.get_type_hints(kind)
        given = {f.name: _build(hints[f.name], value[f.name]) for f in dataclasses.fields(kind) if f.name in value}
        try:
            return kind(**given)
        except TypeError as error:
            raise TraceError(f"{kind.__name__}: {error}") from None
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TraceError(f"A list was expected, but there is {value!r:.80}.")
        return tuple(_build(typing.get_args(kind)[0], item) for item in value)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _build(next(k for k in typing.get_args(kind) if k is not type(None)), value)
    if origin is Literal:
        if value not in typing.get_args(kind):
            raise TraceError(f"{value!r:.80} is none of {', '.join(map(str, typing.get_args(kind)))}.")
        return value
    return _plain(origin or kind, value)


def _plain(kind: Any, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is Any or (isinstance(value, kind) and not (isinstance(value, bool) and kind is int)):
        return value
    raise TraceError(f"{value!r:.80} should be {kind.__name__}.")
