"""The conversation's view model: what is said, what runs, what may be done now. Knows no widget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.history.chats import Chats
from app.history.recorder import Recorder
from app.history.schema import HistoryError
from app.history.store import Attachment, MessageRow
from app.jobs import LoadJob, LoadOutcome, ReplyJob
from app.language import tr
from app.pump import Pump
from app.worker import EngineHandle
from engine import Failed, Finished, GenerateOptions, LoadProgress, Record, Round

if TYPE_CHECKING:
    from engine import Message, ModelInfo

_CUT_SHORT = ("cancelled", "length", "failed")


class ChatController(QObject):
    """The open conversation with one model at a time.

    `changed` follows every change of what may be done; the widgets then ask the properties. A prompt that is sent while
    a model loads waits in `queued` and is sent when the model is there; if the load fails it is given back.
    """

    changed = Signal()
    user_said = Signal(object)  # MessageRow
    reply_began = Signal(int)  # the reply's message
    reply_went_on = Signal()
    records = Signal(object)  # tuple[Record, ...] of the running reply, at most 30 times a second
    plots_due = Signal()
    reply_ended = Signal(object)  # Finished | Failed
    reply_dropped = Signal()
    shown = Signal()
    """Another path or another conversation is to be shown, from its beginning."""
    load_progressed = Signal(object)  # LoadProgress
    loaded = Signal(object)  # ModelInfo
    load_failed = Signal(str)
    load_cancelled = Signal()
    prompt_returned = Signal(str, object)  # text, tuple[Attachment, ...]
    not_kept = Signal(str)
    """Why a reply could not be written down."""

    def __init__(
        self, engine: EngineHandle, options: Callable[[], GenerateOptions], chats: Chats, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.chats = chats
        self.engine = engine
        self._options = options
        self.looks_elsewhere: Callable[[], bool] = lambda: False
        """Whether drafts by lookup may come from the other conversations."""
        self._load: LoadJob | None = None
        self._reply: ReplyJob | None = None
        self._speaking = 0
        self._thinks = False
        self._left = False
        self._last: Finished | Failed | None = None
        self.model: ModelInfo | None = None
        self.queued: str | None = None
        self._queued_files: tuple[Attachment, ...] = ()
        self._pump = Pump(self)
        self._pump.records.connect(self._carry)
        self._pump.plots_due.connect(self.plots_due)
        engine.load_ended.connect(self._on_load_ended)
        engine.reply_ended.connect(self._on_reply_ended)
        chats.opened.connect(self._on_opened)
        chats.branched.connect(self._on_branched)

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
    def thinking(self) -> bool:
        """Whether the running reply is thinking, and can be asked for its answer."""
        return self._thinks and not self.stopping

    @property
    def answer_wanted(self) -> bool:
        """Whether the running reply has been asked to end its thinking."""
        return self._reply is not None and self._reply.answer_now.asked

    @property
    def loading_path(self) -> Path | None:
        return self._load.path if self._load else None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the engine gets it. A prompt that failed without a word is left out."""
        path = [row for row in self.chats.tree.path if row.role == "assistant" and row.content]
        return self.chats.messages(path[-1].id) if path else ()

    @property
    def empty(self) -> bool:
        return self.chats.tree.leaf is None

    def why_not_send(self) -> str:
        """Why nothing can be sent now; empty if something can."""
        if self.stopping:
            return tr("Stopping…")
        if self.replying:
            return tr("The model is replying; Esc stops it.")
        if self.queued is not None:
            return tr("Your message is sent as soon as the model is ready.")
        if self.model is None and not self.loading:
            return tr("Choose a model first (Ctrl+L), or open the demo.")
        return ""

    def why_not_regenerate(self) -> str:
        """Why there is nothing to regenerate now; empty if there is."""
        if self.empty:
            return tr("There is no reply yet.")
        if self.replying or self.loading:
            return self.why_not_send() or tr("A model is being loaded.")
        return "" if self.model else tr("Choose a model first (Ctrl+L).")

    def why_not_continue(self) -> str:
        """Why the last reply cannot go on; empty if it can."""
        if why := self.why_not_regenerate():
            return why
        row = self.chats.tree.path[-1]
        if row.role != "assistant" or not row.content:
            return tr("There is no reply yet.")
        last = self.chats.store.rounds.ending(row.id)
        cut = last is None or last.stats.stop_reason in _CUT_SHORT or isinstance(last, Failed)
        return "" if cut else tr("The reply is complete.")

    def load(self, path: Path, sidecar: Path | None, mmproj: Path | None = None) -> None:
        """Open a model, with a vision tower from a file of its own if `mmproj` names one; a load under way is given up
        for it, a running reply is stopped."""
        if self._load is not None:
            self._load.cancel.cancel()
        if self._reply is not None:
            self._reply.cancel.cancel()
        self._load = self.engine.load(path, sidecar, mmproj=mmproj)
        if self._reply is None:
            self._pump.follow(self._load.mailbox)
        self.changed.emit()

    def send(self, text: str, files: Sequence[Attachment] = ()) -> bool:
        """Say something; false if it cannot be said now (`why_not_send` tells why)."""
        if not (text.strip() or files) or self.why_not_send():
            return False
        if self.loading:
            self.queued, self._queued_files = text, tuple(files)
            self.changed.emit()
        elif not self._say(text, files, after=self.chats.tree.leaf):
            self.prompt_returned.emit(text, tuple(files))
        return True

    def take_back(self) -> None:
        """Give the waiting prompt back to whoever wrote it."""
        if self.queued is not None:
            (text, files), self.queued = (self.queued, self._queued_files), None
            self.prompt_returned.emit(text, files)
            self.changed.emit()

    def regenerate(self, message: int = 0) -> bool:
        """Answer again what a reply (0: the last one) answered; the present reply stays as a branch."""
        if self.why_not_regenerate():
            return False
        tree = self.chats.tree
        target = tree[message] if message else tree.path[-1]
        prompt = target.id if target.role == "user" else target.parent
        assert prompt is not None, "a reply stands after a message"
        before = tree.leaf
        at_end = target.id == before
        tree.show_to(prompt)
        if not at_end:
            self.shown.emit()
        elif target.role == "assistant":
            self.reply_dropped.emit()
        return self._answer(prompt) or self._show_again(before)

    def edit(self, message: int, text: str) -> bool:
        """Say something else in the place of a message; what was there stays as a branch. False if that fails."""
        if not text.strip() or self.why_not_regenerate():
            return False
        row, before = self.chats.tree[message], self.chats.tree.leaf
        self.chats.tree.show_to(row.parent)
        self.shown.emit()
        return self._say(text, self.chats.files(message), after=row.parent) or self._show_again(before)

    def _show_again(self, leaf: int | None) -> bool:
        """Nothing could be written down: show what was there before."""
        self.chats.tree.show_to(leaf)
        self._on_branched()
        return False

    def go_on(self) -> bool:
        """Let the last reply go on where it was cut short."""
        if self.why_not_continue():
            return False
        row = self.chats.tree.path[-1]
        assert row.parent is not None
        so_far = self.chats.store.rounds.tokens(row.id)
        try:
            self.chats.store.resume(row.id)
        except HistoryError as error:
            self.chats.problem.emit(str(error))
            return False
        self.reply_went_on.emit()
        self._run(row, self.chats.messages(row.parent), so_far)
        return True

    def new_chat(self) -> None:
        """Show an empty conversation; a running reply is stopped and what still comes of it is not shown."""
        self.chats.new()

    def stop(self) -> None:
        """Stop the reply that runs, or the load."""
        job = self._reply or self._load
        if job is not None:
            job.cancel.cancel()
            self.changed.emit()

    def answer_now(self) -> None:
        """Let the thinking end, and the answer begin."""
        if self._reply is not None and self.thinking and not self.answer_wanted:
            self._reply.answer_now.ask()
            self.changed.emit()

    def leave(self) -> None:
        """Close the history; what the engine still says is not heard."""
        self._reply = None
        self._pump.stop(flush=False)
        self._left = True
        self.chats.store.close()

    def _say(self, text: str, files: Sequence[Attachment], *, after: int | None) -> bool:
        """False if it could not be written down, and so has not been said."""
        try:
            row = self.chats.say(text, files, after=after)
        except HistoryError as error:
            self.chats.problem.emit(str(error))
            return False
        self.user_said.emit(row)
        self._answer(row.id)
        return True

    def _answer(self, prompt: int) -> bool:
        """False if the reply could not be written down, and so has not begun."""
        try:
            row = self.chats.begin_reply(prompt, self.model.name if self.model else "")
        except HistoryError as error:
            self.chats.problem.emit(str(error))
            self.changed.emit()
            return False
        self.reply_began.emit(row.id)
        self._run(row, self.chats.messages(prompt))
        return True

    def _run(self, row: MessageRow, messages: Sequence[Message], so_far: Sequence[int] = ()) -> None:
        self._last = None
        self._thinks = False
        self._speaking = row.id
        others = self.chats.others() if self.looks_elsewhere() else tuple
        self._reply = self.engine.reply(messages, self._options(), self.chats.recorder(row.id), so_far, others)
        self._pump.follow(self._reply.mailbox)
        self.changed.emit()

    def show_branch(self, message: int, step: int) -> bool:
        """Show the alternative before or after a message, unless the model is speaking."""
        return not self.replying and self.chats.show_branch(message, step)

    def delete_message(self, message: int) -> Callable[[], None] | None:
        """Put a message and what follows it out of sight; returns what undoes it, or None while the model speaks."""
        return None if self.replying else self.chats.delete_message(message)

    def _take_over_given_up(self, job: ReplyJob) -> None:
        """A reply whose conversation was left has ended: somebody may be looking at it again."""
        if isinstance(job.record, Recorder) and job.record.message in self.chats.tree:
            self.chats.refresh(job.record.message)
            self._on_branched()

    @Slot()
    def _on_opened(self) -> None:
        self.queued = None  # it is still what was being written in its own conversation
        if self._reply is not None:
            self._reply.cancel.cancel()
            self._reply, self._thinks = None, False
            self._pump.stop(flush=False)
            if self._load is not None:
                self._pump.follow(self._load.mailbox)
        self.engine.forget_session()
        self._on_branched()

    @Slot()
    def _on_branched(self) -> None:
        self.shown.emit()
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
        self._follow_thinking(records)

    def _follow_thinking(self, records: tuple[Record, ...]) -> None:
        """Tell when the thinking begins and when it ends."""
        if isinstance(records[-1], Finished | Failed):
            thinks = False
        else:
            said = (record for record in reversed(records) if isinstance(record, Round))
            thinks = next((record.committed[-1].phase == "think" for record in said), self._thinks)
        if thinks is not self._thinks:
            self._thinks = thinks
            self.changed.emit()

    @Slot(object)
    def _on_reply_ended(self, job: ReplyJob) -> None:
        if self._left:
            return
        if job is not self._reply:
            self._take_over_given_up(job)
            return
        self._pump.stop(flush=True)
        self._reply = None
        if self._load is not None:
            self._pump.follow(self._load.mailbox)
        assert self._last is not None, "the worker always ends a reply with Finished or Failed"
        self.chats.refresh(self._speaking)
        if isinstance(job.record, Recorder) and job.record.problem:
            self.not_kept.emit(job.record.problem)
        self.reply_ended.emit(self._last)
        self.changed.emit()

    @Slot(object, object)
    def _on_load_ended(self, job: LoadJob, outcome: LoadOutcome) -> None:
        if self._left:
            return
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
        if text is not None and not self._say(text, self._queued_files, after=self.chats.tree.leaf):
            self.prompt_returned.emit(text, self._queued_files)
