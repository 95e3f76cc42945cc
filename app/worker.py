"""The only caller of the engine: a QObject in a thread of its own, and the handle by which the window commands it.

Commands go in as queued signals and are worked off in order. Stop does not: it sets the job's cancel token from the
window's thread, which the engine checks per layer and per disk read. Records come out through the job's mailbox;
signals tell only that a job has ended.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from app.jobs import CountJob, Job, LoadJob, LoadModel, LoadOutcome, ModelLike, ReplyJob, SessionLike, TaskJob
from app.language import tr
from app.lookup import Lookup
from app.residency.glance import Glance
from engine import Cancelled, EngineError, Failed, Finished, GenerateOptions, LoadOptions, Record

if TYPE_CHECKING:  # with these come the kernels and their compiler, for which only the engine's thread should wait
    from engine import Message, Stall

STACK_BYTES = 64 << 20
"""The compiler of the kernels recurses deeply; some systems give threads very little stack."""
STALL_LASTS_S = 2.0
"""Seconds after which a stall that is not told again is over; the engine tells it once a second."""


class Worker(QObject):
    """Runs in the engine's thread. Owns the model and the session."""

    load_ended = Signal(object, object)  # LoadJob, LoadOutcome
    reply_ended = Signal(object)  # ReplyJob
    counted = Signal(object, int)  # CountJob, tokens
    task_ended = Signal(object)  # TaskJob
    closed = Signal()
    fault = Signal(str)  # the traceback of an error that nobody foresaw

    def __init__(self, load_model: LoadModel) -> None:
        super().__init__()
        self._load_model = load_model
        self._model: ModelLike | None = None
        self._session: SessionLike | None = None
        self._stall: tuple[Stall, float] | None = None
        self._lookup = Lookup()

    def look(self) -> Glance | None:
        """The weights at this moment; may be called from any thread. None without a model."""
        model, stall = self._model, self._stall
        if model is None:
            return None
        counters, (layer, layers) = model.statistics(), model.activity()
        lasting = stall is not None and time.monotonic() - stall[1] < STALL_LASTS_S
        return Glance(
            model.residency(),
            layer,
            layers,
            counters.bytes_read,
            counters.wait_s,
            counters.memory_bytes,
            stall[0] if stall is not None and lasting else None,
        )

    def _on_stall(self, stall: Stall) -> None:
        self._stall = stall, time.monotonic()

    @Slot(object)
    def load(self, job: LoadJob) -> None:
        """Load a model beside the present one and put it in its place only when it is whole."""
        outcome = self._try_load(job)
        self.load_ended.emit(job, outcome)

    def _try_load(self, job: LoadJob) -> LoadOutcome:
        try:
            job.cancel.check()
            model = self._load_model(
                job.path,
                sidecar=job.sidecar,
                mmproj=job.mmproj,
                options=job.options,
                progress=job.mailbox.put,
                stalled=self._on_stall,
                cancel=job.cancel,
            )
        except Cancelled:
            return LoadOutcome()
        except EngineError as error:
            return LoadOutcome(problem=str(error))
        except MemoryError:
            return LoadOutcome(
                problem=tr("There is not enough memory to load {path}; choose a smaller checkpoint.", path=job.path)
            )
        except Exception as error:
            self.fault.emit(traceback.format_exc())
            return LoadOutcome(
                problem=tr("Loading {path} failed unexpectedly: {error}.", path=job.path, error=_said(error))
            )
        if job.cancel.cancelled:
            model.close()
            return LoadOutcome()
        self._drop_model()
        self._model = model
        return LoadOutcome(info=model.info)

    @Slot(object)
    def reply(self, job: ReplyJob) -> None:
        """Stream one reply into the job's mailbox. Its last record is always a `Finished` or a `Failed`. Records are
        kept, and stay English whatever the window speaks."""
        last: Record | None = None
        try:
            if self._model is None:
                raise EngineError("No model is loaded; choose one first.")  # not translated: kept
            if self._session is None:
                self._session = self._model.new_session()
            self._lookup.prepare(self._model, self._session, job.others())
            for record in records_of(self._session, job):
                job.tell(record)
                last = record
            problem = "The engine ended the reply without saying why; send the message again."  # not translated: kept
            kind = "EngineError"
        except EngineError as error:
            problem, kind = str(error), type(error).__name__
        except Exception as error:
            self.fault.emit(traceback.format_exc())
            problem = f"The reply failed unexpectedly: {_said(error)}."  # not translated: kept
            kind = type(error).__name__
        if not isinstance(last, Finished | Failed):
            self._session = None  # its state is unknown now
            job.tell(Failed(message=problem, kind=kind))
        self.reply_ended.emit(job)

    @Slot(object)
    def run_task(self, job: TaskJob) -> None:
        """Do a task with the model and the conversation as they are now."""
        try:
            job.cancel.check()
            if self._model is None:
                raise EngineError(tr("No model is loaded; choose one first."))
            job.result = job.work(self._model, self._session, job)
        except Cancelled:
            pass
        except EngineError as error:
            job.problem = str(error)
        except Exception as error:
            self.fault.emit(traceback.format_exc())
            job.problem = tr("This failed unexpectedly: {error}.", error=_said(error))
        self.task_ended.emit(job)

    @Slot(object)
    def count(self, job: CountJob) -> None:
        """Tell how many tokens messages take; -1 if that cannot be told."""
        tokens = -1
        with suppress(EngineError):
            if self._model is not None:
                session, options = self._model.new_session(), GenerateOptions()
                more, less = (len(session.prompt_tokens(said, options)) for said in (job.messages, job.less))
                tokens = more - less
        self.counted.emit(job, tokens)

    @Slot()
    def forget_session(self) -> None:
        """The next reply starts a conversation with empty caches."""
        self._session = None

    @Slot()
    def close(self) -> None:
        """Let go of the model and its files."""
        self._drop_model()
        self.closed.emit()

    def _drop_model(self) -> None:
        self._session = None
        self._lookup.forget()
        if self._model is not None:
            self._model.close()
            self._model = None


def _said(error: Exception) -> str:
    """What an error says, or at least its kind."""
    return str(error) or type(error).__name__


def records_of(session: SessionLike, job: ReplyJob) -> Iterator[Record]:
    if not job.so_far:
        return session.reply(job.messages, job.options, job.cancel, job.answer_now)
    tokens = [*session.prompt_tokens(job.messages, job.options), *job.so_far]
    pictures = [picture for message in job.messages for picture in message.images]
    return session.complete(tokens, job.options, job.cancel, pictures, job.answer_now)


class EngineHandle(QObject):
    """The window's side of the worker: sends commands, keeps the tokens by which they are stopped."""

    load_ended = Signal(object, object)
    reply_ended = Signal(object)
    counted = Signal(object, int)  # CountJob, tokens; -1 if that cannot be told
    task_ended = Signal(object)
    closed = Signal()
    fault = Signal(str)

    _load = Signal(object)
    _reply = Signal(object)
    _count = Signal(object)
    _task = Signal(object)
    _forget = Signal()
    _close = Signal()

    def __init__(self, load_model: LoadModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: set[Job] = set()
        self.options_for: Callable[[Path], LoadOptions] = lambda _: LoadOptions()
        """How a checkpoint is loaded, unless `load` is told."""
        self.tower_for: Callable[[Path], Path | None] = lambda _: None
        """The vision tower that a checkpoint is loaded with, unless `load` is told."""
        self._thread = QThread()
        self._thread.setObjectName("engine")
        self._thread.setStackSize(STACK_BYTES)
        self._worker = Worker(load_model)
        self._worker.moveToThread(self._thread)
        self._load.connect(self._worker.load)
        self._reply.connect(self._worker.reply)
        self._count.connect(self._worker.count)
        self._worker.counted.connect(self.counted)
        self._task.connect(self._worker.run_task)
        self._forget.connect(self._worker.forget_session)
        self._close.connect(self._worker.close)
        self._worker.load_ended.connect(self._on_load_ended)
        self._worker.reply_ended.connect(self._on_reply_ended)
        self._worker.task_ended.connect(self._on_task_ended)
        self._worker.fault.connect(self.fault)
        self._worker.closed.connect(self._thread.quit, Qt.ConnectionType.DirectConnection)
        self._thread.finished.connect(self._on_finished)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a job waits or runs."""
        return bool(self._jobs)

    @property
    def running(self) -> bool:
        """Whether the engine's thread lives."""
        return self._thread.isRunning()

    def load(
        self,
        path: Path,
        sidecar: Path | None = None,
        options: LoadOptions | None = None,
        mmproj: Path | None = None,
    ) -> LoadJob:
        path = Path(os.path.abspath(path))  # as the engine names it: by that is known what is remembered of it
        job = LoadJob(path, sidecar, options or self.options_for(path), mmproj or self.tower_for(path))
        self._jobs.add(job)
        self._load.emit(job)
        return job

    def count(self, messages: Sequence[Message], less: Sequence[Message]) -> CountJob:
        """Ask how many tokens more `messages` take than `less`; `counted` tells."""
        job = CountJob(tuple(messages), tuple(less))
        self._count.emit(job)
        return job

    def reply(
        self,
        messages: Sequence[Message],
        options: GenerateOptions,
        record: Callable[[Record], None] | None = None,
        so_far: Sequence[int] = (),
        others: Callable[[], Sequence[str]] = tuple,
    ) -> ReplyJob:
        job = ReplyJob(tuple(messages), options, record, tuple(so_far), others)
        self._jobs.add(job)
        self._reply.emit(job)
        return job

    def task(self, work: Callable[[ModelLike, SessionLike | None, TaskJob], object]) -> TaskJob:
        """Have something else done with the model, after what waits already."""
        job = TaskJob(work)
        self._jobs.add(job)
        self._task.emit(job)
        return job

    def look(self) -> Glance | None:
        """The weights of the loaded model at this moment, without disturbing the engine."""
        return self._worker.look()

    def forget_session(self) -> None:
        self._forget.emit()

    def stop_all(self) -> None:
        """Ask every job to end at its next check."""
        for job in self._jobs:
            job.cancel.cancel()

    def close(self) -> None:
        """Stop everything, let go of the model, end the thread; `closed` tells when it is done."""
        self.stop_all()
        self._close.emit()

    def wait(self, milliseconds: int) -> bool:
        """Block until the thread has ended; true if it has. For the very end of the program and for tests."""
        return self._thread.wait(milliseconds)

    @Slot(object, object)
    def _on_load_ended(self, job: LoadJob, outcome: LoadOutcome) -> None:
        self._jobs.discard(job)
        self.load_ended.emit(job, outcome)

    @Slot(object)
    def _on_reply_ended(self, job: ReplyJob) -> None:
        self._jobs.discard(job)
        self.reply_ended.emit(job)

    @Slot(object)
    def _on_task_ended(self, job: TaskJob) -> None:
        self._jobs.discard(job)
        self.task_ended.emit(job)

    @Slot()
    def _on_finished(self) -> None:
        self._thread.wait()
        self.closed.emit()
