"""The conversation's view model: what is said, what runs, what may be done now. Knows no widget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.pump import Pump
from app.worker import EngineHandle, LoadJob, LoadOutcome, ReplyJob
from engine import Failed, Finished, GenerateOptions, LoadProgress, Record

if TYPE_CHECKING:
    from engine import Message, ModelInfo


@dataclass
class Turn:
    """What the person said, and what came back (None until a reply has any text)."""

    prompt: str
    reply: str | None = None

    def messages(self) -> list[Message]:
        """The turn as the engine gets it."""
        from engine import Message  # when a turn is made, a model has long been loaded

        said = [Message("user", self.prompt)]
        return said if self.reply is None else [*said, Message("assistant", self.reply)]


class ChatController(QObject):
    """One conversation with one model at a time.

    `changed` follows every change of what may be done; the widgets then ask the properties. A prompt that is sent while
    a model loads waits in `queued` and is sent when the model is there; if the load fails it is given back.
    """

    changed = Signal()
    user_said = Signal(str)
    reply_began = Signal()
    records = Signal(object)  # tuple[Record, ...] of the running reply, at most 30 times a second
    plots_due = Signal()
    reply_ended = Signal(object)  # Finished | Failed
    reply_dropped = Signal()
    cleared = Signal()
    load_progressed = Signal(object)  # LoadProgress
    loaded = Signal(object)  # ModelInfo
    load_failed = Signal(str)
    load_cancelled = Signal()
    prompt_returned = Signal(str)

    def __init__(
        self, engine: EngineHandle, options: Callable[[], GenerateOptions], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._options = options
        self._turns: list[Turn] = []
        self._load: LoadJob | None = None
        self._reply: ReplyJob | None = None
        self._last: Finished | Failed | None = None
        self.model: ModelInfo | None = None
        self.queued: str | None = None
        self._pump = Pump(self)
        self._pump.records.connect(self._carry)
        self._pump.plots_due.connect(self.plots_due)
        engine.load_ended.connect(self._on_load_ended)
        engine.reply_ended.connect(self._on_reply_ended)

    @property
    def loading(self) -> bool:
        return self._load is not None

    @property
    def replying(self) -> bool:
        return self._reply is not None

    @property
    def stopping(self) -> bool:
        """Whether Stop was asked for and has not yet worked."""
        job = self._reply or self._load
        return job is not None and job.cancel.cancelled

    @property
    def loading_path(self) -> Path | None:
        return self._load.path if self._load else None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the engine gets it. A prompt that failed without a word is left out."""
        answered = [turn for turn in self._turns if turn.reply is not None]
        return tuple(message for turn in answered for message in turn.messages())

    @property
    def empty(self) -> bool:
        return not self._turns

    def why_not_send(self) -> str:
        """Why nothing can be sent now; empty if something can."""
        if self.stopping:
            return "Stopping…"
        if self.replying:
            return "The model is replying; Esc stops it."
        if self.queued is not None:
            return "Your message is sent as soon as the model is ready."
        if self.model is None and not self.loading:
            return "Choose a model first (Ctrl+L), or open the demo."
        return ""

    def why_not_regenerate(self) -> str:
        """Why there is nothing to regenerate now; empty if there is."""
        if self.empty:
            return "There is no reply yet."
        if self.replying or self.loading:
            return self.why_not_send() or "A model is being loaded."
        return "" if self.model else "Choose a model first (Ctrl+L)."

    def load(self, path: Path, sidecar: Path | None) -> None:
        """Open a model; a load under way is given up for it, a running reply is stopped."""
        if self._load is not None:
            self._load.cancel.cancel()
        if self._reply is not None:
            self._reply.cancel.cancel()
        self._load = self._engine.load(path, sidecar)
        if self._reply is None:
            self._pump.follow(self._load.mailbox)
        self.changed.emit()

    def send(self, text: str) -> bool:
        """Say something; false if it cannot be said now (`why_not_send` tells why)."""
        if not text.strip() or self.why_not_send():
            return False
        if self.loading:
            self.queued = text
            self.changed.emit()
        else:
            self._start(Turn(text))
        return True

    def take_back(self) -> None:
        """Give the waiting prompt back to whoever wrote it."""
        if self.queued is not None:
            text, self.queued = self.queued, None
            self.prompt_returned.emit(text)
            self.changed.emit()

    def regenerate(self) -> bool:
        """Drop the last reply and ask again."""
        if self.why_not_regenerate():
            return False
        turn = self._turns.pop()
        self.reply_dropped.emit()
        self._start(Turn(turn.prompt), again=True)
        return True

    def new_chat(self) -> None:
        """Forget the conversation; a running reply is stopped and what still comes of it is not shown."""
        if self._reply is not None:
            self._reply.cancel.cancel()
            self._reply = None
            self._pump.stop(flush=False)
            if self._load is not None:
                self._pump.follow(self._load.mailbox)
        self._turns.clear()
        self._engine.forget_session()
        self.cleared.emit()
        self.changed.emit()

    def stop(self) -> None:
        """Stop the reply that runs, or the load."""
        job = self._reply or self._load
        if job is not None:
            job.cancel.cancel()
            self.changed.emit()

    def _start(self, turn: Turn, *, again: bool = False) -> None:
        messages = (*self.messages, *turn.messages())
        self._turns.append(turn)
        self._last = None
        if not again:
            self.user_said.emit(turn.prompt)
        self.reply_began.emit()
        self._reply = self._engine.reply(messages, self._options())
        self._pump.follow(self._reply.mailbox)
        self.changed.emit()

    @Slot(object)
    def _carry(self, records: tuple[Record, ...]) -> None:
        if self._reply is None:
            for record in records:
                if isinstance(record, LoadProgress):
                    self.load_progressed.emit(record)
            return
        if isinstance(records[-1], Finished | Failed):
            self._last = records[-1]
        self.records.emit(records)

    @Slot(object)
    def _on_reply_ended(self, job: ReplyJob) -> None:
        if job is not self._reply:
            return
        self._pump.stop(flush=True)
        self._reply = None
        if self._load is not None:
            self._pump.follow(self._load.mailbox)
        assert self._last is not None, "the worker always ends a reply with Finished or Failed"
        self._turns[-1].reply = self._last.text or None
        self.reply_ended.emit(self._last)
        self.changed.emit()

    @Slot(object, object)
    def _on_load_ended(self, job: LoadJob, outcome: LoadOutcome) -> None:
        if outcome.info is not None:
            self.model = outcome.info
            self.loaded.emit(outcome.info)
        if job is not self._load:
            return  # another load took its place
        self._pump.stop(flush=True)
        self._load = None
        if outcome.problem:
            self.load_failed.emit(outcome.problem)
        elif outcome.info is None:
            self.load_cancelled.emit()
        if self.queued is not None:
            self._send_queued() if outcome.info is not None else self.take_back()
        self.changed.emit()

    def _send_queued(self) -> None:
        text, self.queued = self.queued, None
        if text is not None:
            self._start(Turn(text))
