"""Keeps every reply of the window as a run: collects records, asks the engine what ran, writes in the background."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, SignalInstance, Slot

from app.jobs import ModelLike, ReplyJob, SessionLike, TaskJob
from app.runs.experiments import closed_thought
from app.runs.store import RunStore
from app.worker import EngineHandle
from engine import EngineError, Failed, Finished, Record, Round, TraceHeader, __version__

if TYPE_CHECKING:
    from engine import GenerateOptions


class RunRecorder(QObject):
    """One run a reply. Nothing is written while a reply runs, so it costs the engine nothing."""

    kept = Signal(object)  # Path
    failed = Signal(str)

    def __init__(self, engine: EngineHandle, store: RunStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._store = store
        self._records: list[Record] = []
        self._waiting: dict[TaskJob, tuple[Record, ...]] = {}
        self._writing = Lock()
        self._writer: Thread | None = None
        self.last_job: ReplyJob | None = None
        """The newest reply that was finished here."""
        self.last_reply: Finished | Failed | None = None
        self.last_closed: int | None = None
        """After how many tokens its thought was closed by force."""
        engine.reply_ended.connect(self._on_reply_ended)
        engine.task_ended.connect(self._on_described)

    @Slot()
    def begin(self) -> None:
        """A reply begins."""
        self._records = []

    def add_records(self, records: tuple[Record, ...]) -> None:
        """These happened."""
        self._records.extend(records)

    def wait(self) -> None:
        """Block until the newest run is written."""
        if self._writer is not None:
            self._writer.join()

    @Slot(object)
    def _on_reply_ended(self, job: ReplyJob) -> None:
        records, self._records = tuple(self._records), []
        if not records or not isinstance(records[-1], Finished | Failed):
            return  # a reply that was given up: its records went nowhere
        self.last_job, self.last_reply, self.last_closed = job, records[-1], closed_thought(records)
        if any(isinstance(record, Round) for record in records):
            task = self._engine.task(lambda model, session, _task: describe(model, session, job))
            self._waiting[task] = records

    @Slot(object)
    def _on_described(self, task: TaskJob) -> None:
        records = self._waiting.pop(task, None)
        if records is not None and isinstance(task.result, TraceHeader):
            self._writer = Thread(target=self._write, args=(task.result, records), name="runs")
            self._writer.start()

    def _write(self, header: TraceHeader, records: tuple[Record, ...]) -> None:
        """In a thread of its own, one run after the other; the signals find their way to the window's."""
        with self._writing:
            try:
                path = self._store.write(header, records)
            except EngineError as error:
                self._tell(self.failed, str(error))
            else:
                self._tell(self.kept, path)

    @staticmethod
    def _tell(signal: SignalInstance, news: object) -> None:
        """Nobody is told any more when the window went while the run was written; the run is kept all the same."""
        with suppress(RuntimeError):
            signal.emit(news)


def describe(model: ModelLike, session: SessionLike | None, job: ReplyJob) -> TraceHeader:
    """What ran, for the head of its file. In the engine's thread."""
    from engine import describe_run

    prompt = next((str(m.content) for m in reversed(job.messages) if m.role == "user"), "")
    try:
        tokens = [*session.prompt_tokens(job.messages, job.options), *job.so_far] if session is not None else []
        return describe_run(model.info, job.options, prompt, tokens)
    except EngineError:
        return _plain_header(model.info.name, job.options, prompt)


def _plain_header(model: str, options: GenerateOptions, prompt: str) -> TraceHeader:
    """Without the files' digests, where the files cannot be read any more."""
    from dataclasses import asdict

    return TraceHeader(
        draftscope=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=model,
        settings=asdict(options),
        seed=options.sampling.seed,
        prompt=prompt,
    )
