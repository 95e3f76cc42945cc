"""What the window asks of the engine: jobs, and the parts of the engine that they are done with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.mailbox import Mailbox
from engine import AnswerNow, CancelToken, GenerateOptions, LoadOptions, LoadProgress, Record

if TYPE_CHECKING:  # with these come the kernels and their compiler, for which only the engine's thread should wait
    from engine import MemoryBudget, Message, ModelInfo, Picture, PictureSize, SelfCheck, Stall, WeightStatistics


class SessionLike(Protocol):
    """A conversation of the engine."""

    def reply(
        self,
        messages: Sequence[Message],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]: ...
    def complete(
        self,
        tokens: Sequence[int],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        images: Sequence[Picture] = (),
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]: ...
    def prompt_tokens(self, messages: Sequence[Message], options: GenerateOptions) -> list[int]: ...
    def search_also(self, texts: Sequence[Sequence[int]]) -> None: ...
    def check(
        self, progress: Callable[[int, int], None] | None = None, cancel: CancelToken | None = None
    ) -> SelfCheck: ...


class ModelLike(Protocol):
    """A loaded model of the engine."""

    @property
    def info(self) -> ModelInfo: ...
    def new_session(self) -> SessionLike: ...
    def encode(self, text: str) -> list[int]: ...
    def picture_sizes(self, picture: Picture) -> tuple[PictureSize, ...]: ...
    def statistics(self) -> WeightStatistics: ...
    def residency(self) -> dict[str, str]: ...
    def activity(self) -> tuple[int, int]: ...
    def set_budget(
        self,
        budget: MemoryBudget,
        progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None: ...
    def close(self) -> None: ...


class LoadModel(Protocol):
    """`engine.load_model`, or a script that stands in for it."""

    def __call__(
        self,
        path: Path,
        *,
        sidecar: Path | None,
        mmproj: Path | None,
        options: LoadOptions,
        progress: Callable[[LoadProgress], None],
        stalled: Callable[[Stall], None],
        cancel: CancelToken,
    ) -> ModelLike: ...


@dataclass(eq=False)
class Job:
    """One piece of work for the engine, with its own Stop and its own mailbox."""

    cancel: CancelToken = field(default_factory=CancelToken, init=False)
    mailbox: Mailbox = field(init=False)

    def __post_init__(self) -> None:
        self.mailbox = Mailbox(self.cancel)


@dataclass(eq=False)
class LoadJob(Job):
    """Open a checkpoint, and a sidecar with it."""

    path: Path
    sidecar: Path | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    mmproj: Path | None = None
    """A vision tower in a file of its own."""


@dataclass(eq=False)
class CountJob(Job):
    """How many tokens more the one conversation takes than the other."""

    messages: tuple[Message, ...]
    less: tuple[Message, ...]


@dataclass(eq=False)
class ReplyJob(Job):
    """Answer a conversation; go on after the tokens `so_far` of a reply that was cut short."""

    messages: tuple[Message, ...]
    options: GenerateOptions
    record: Callable[[Record], None] | None = None
    """Gets every record before the window does, in the engine's thread."""
    so_far: tuple[int, ...] = ()
    others: Callable[[], Sequence[str]] = tuple
    """Asked in the engine's thread for texts in which lookup may search too."""
    answer_now: AnswerNow = field(default_factory=AnswerNow, init=False)
    """Asked from the window's thread, it ends the thinking."""

    def tell(self, record: Record) -> None:
        """Write a record down, and pass it on to the window."""
        if self.record is not None:
            self.record(record)
        self.mailbox.put(record)


@dataclass(eq=False)
class TaskJob(Job):
    """Something else to be done with the model. `work` runs in the engine's thread, and knows only what it is given."""

    work: Callable[[ModelLike, SessionLike | None, TaskJob], object]
    result: object = None
    """What `work` returned; None if it was cancelled or failed."""
    problem: str = ""
    """Why there is no result, if nobody cancelled it."""


@dataclass(frozen=True)
class LoadOutcome:
    """How a load ended: with a model's facts, with a problem, or (neither) cancelled."""

    info: ModelInfo | None = None
    problem: str = ""
