"""Everything about runs in one window: keeps them, shows them in place of the chat, compares, proves and measures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QStackedWidget, QWidget

from app.chat.controller import ChatController
from app.chat.transcript_view import TranscriptView
from app.inspector.panel import InspectorPanel
from app.inspector.round_link import RoundLink
from app.jobs import TaskJob
from app.language import mark, tr
from app.runs.experiments import Proof, measure_plain, prove, verdict
from app.runs.recorder import RunRecorder
from app.runs.run_view import RunView
from app.runs.runs_panel import RunsPanel
from app.runs.store import SUFFIX, RunStore
from app.runs.stored_feed import StoredFeed
from app.theme import Theme
from app.widgets import push
from app.worker import EngineHandle
from engine import Finished, Record, Round, TraceError, read_trace

if TYPE_CHECKING:  # with it comes pyqtgraph, for which the window's first paint does not wait
    from app.runs.compare_view import CompareView

_PROGRESS_MS = 200
_NO_REPLY = mark("There is no reply of this start yet: send a message first.")


class RunDesk(QObject):
    """Composes the parts; the window gives it the chat's view and the inspector, and shows `stack` in its middle."""

    said = Signal(str, str)
    """A sentence for the person, and its level: error, warning, info."""
    page_changed = Signal()
    """The chat, a run or a comparison came to the front."""

    def __init__(
        self, engine: EngineHandle, view: TranscriptView, inspector: InspectorPanel, folder: Path, theme: Theme
    ) -> None:
        super().__init__(view)
        self._engine = engine
        self._inspector = inspector
        self.store = RunStore(folder)
        self.recorder = RunRecorder(engine, self.store, self)
        self.panel = RunsPanel(self.store)
        self.run = RunView(theme)
        self.comparison: CompareView | None = None
        """Made for the first comparison."""
        self._theme = theme
        self.stack = QStackedWidget()
        self._chat_link = RoundLink(view, inspector, self)
        self._run_link = RoundLink(self.run.view, inspector, self)
        self._run_link.on = False
        self._view = view
        self._chat_rounds: list[Round] = []
        self.stored = StoredFeed(self)
        self.stored.read.connect(self._on_stored)
        self.stored.ended.connect(inspector.refresh_soon)
        self._proof: TaskJob | None = None
        self._measure: TaskJob | None = None
        self._progress = QTimer(self, interval=_PROGRESS_MS)
        self._progress.timeout.connect(self._show_progress)
        self.run.head.addWidget(push(tr("Back to the chat"), self.show_chat))
        self.panel.open_requested.connect(self.open_path)
        self.panel.compare_requested.connect(self.compare)
        self.panel.file_requested.connect(self.choose_file)
        self.recorder.kept.connect(lambda _path: self.panel.refresh())
        self.recorder.failed.connect(lambda problem: self.said.emit(problem, "warning"))
        inspector.measure_requested.connect(self.measure)
        engine.task_ended.connect(self._on_task_ended)
        self._show_buttons()

    def slots(self) -> dict[str, Callable[[], object]]:
        """What the actions of the same names do."""
        return {
            "open_run": self.choose_file,
            "prove": self.prove,
            "measure_plain": self.measure,
            "previous_round": lambda: self._inspector.scrubber.step(-1),
            "next_round": lambda: self._inspector.scrubber.step(1),
            "all_rounds": lambda: self._inspector.scrubber.go(None),
        }

    # The chat's news

    def follow(self, chat: ChatController) -> None:
        """Keep up with the chat's replies."""
        chat.reply_began.connect(self.begin_reply)
        chat.reply_ended.connect(self.end_reply)

    def wrap(self, chat: QWidget) -> QStackedWidget:
        """The window's middle: the chat, and what comes in its place."""
        for page in (chat, self.run):
            self.stack.addWidget(page)
        return self.stack

    @Slot()
    def begin_reply(self) -> None:
        """A reply of the chat begins: nothing else is looked at now."""
        self.stored.stop()
        self.stop()
        self.show_chat()
        self._chat_link.leave()
        self.recorder.begin()
        self._show_buttons()

    def add_records(self, records: tuple[Record, ...]) -> None:
        """The chat's reply went on."""
        self.recorder.add_records(records)
        rounds = [record for record in records if isinstance(record, Round)]
        self._chat_rounds += rounds
        if not self.showing_run:
            self._inspector.add_records(rounds)

    @Slot()
    def end_reply(self) -> None:
        """The chat's reply has ended."""
        self._inspector.catch_up()
        QTimer.singleShot(0, self, self._show_buttons)

    @Slot()
    def clear(self) -> None:
        """Another conversation, or another path, is open: its rounds come from the history."""
        self._chat_rounds.clear()
        self.show_chat()
        self._inspector.clear()
        self._chat_link.leave()
        self.stored.start(self._view.model.entries)

    @Slot(object)
    def _on_stored(self, rounds: list[Round]) -> None:
        self._chat_rounds += rounds
        if not self.showing_run:
            self._inspector.add_records(rounds)

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        self.run.apply_theme(theme)
        if self.comparison is not None:
            self.comparison.apply_theme(theme)

    # Pages

    @property
    def showing_run(self) -> bool:
        """Whether the inspector shows a run's rounds and not the chat's."""
        return self._run_link.on

    @Slot()
    def show_chat(self) -> None:
        """Leave the run or the comparison."""
        if self.stack.currentIndex() != 0:
            self.stack.setCurrentIndex(0)
            self._view.setFocus()
        if self._run_link.on:
            self._feed(self._chat_rounds, of_run=False)
        self.page_changed.emit()

    @Slot()
    def choose_file(self) -> None:
        """Ask for a run's file."""
        start = str(self.store.folder) if self.store.folder.is_dir() else ""
        chosen, _ = QFileDialog.getOpenFileName(
            self.panel, tr("Open a run"), start, tr("Runs (*{suffix});;All files (*)", suffix=SUFFIX)
        )
        if chosen:
            self.open_path(Path(chosen))

    @Slot(object)
    def open_path(self, path: Path) -> bool:
        """Show a run in place of the chat; false, with a sentence said, if the file cannot be read."""
        try:
            trace = read_trace(path)
        except TraceError as error:
            self.said.emit(str(error), "error")
            return False
        self.run.show_trace(trace)
        self._feed(trace.rounds, of_run=True)
        self.stack.setCurrentWidget(self.run)
        self.run.view.setFocus()
        self.page_changed.emit()
        return True

    @Slot(object, object)
    def compare(self, first: Path, second: Path) -> None:
        """Show two runs side by side."""
        try:
            traces = read_trace(first), read_trace(second)
        except TraceError as error:
            self.said.emit(str(error), "error")
            return
        comparison = self.comparison or self._make_comparison()
        comparison.show_traces(*traces)
        self.stack.setCurrentWidget(comparison)
        comparison.sides[0].view.setFocus()
        self.page_changed.emit()

    def _make_comparison(self) -> CompareView:
        from app.runs.compare_view import CompareView

        self.comparison = CompareView(self._theme)
        back = push(tr("Back to the chat"), self.show_chat)
        self.comparison.head.addWidget(back, 0, Qt.AlignmentFlag.AlignLeft)
        self.stack.addWidget(self.comparison)
        return self.comparison

    def _feed(self, rounds: list[Round] | tuple[Round, ...], *, of_run: bool) -> None:
        """Have the inspector show these rounds."""
        self._chat_link.leave()
        self._run_link.leave()
        self._chat_link.on, self._run_link.on = not of_run, of_run
        self._inspector.clear()
        self._inspector.add_records(rounds)
        self._inspector.refresh()

    # Experiments

    @Slot()
    def prove(self) -> None:
        """Check the last reply bit by bit against plain decoding."""
        job, reply = self.recorder.last_job, self.recorder.last_reply
        if self._engine.busy or job is None or reply is None:
            why = tr("The engine is busy; prove the reply when it has ended.") if self._engine.busy else tr(_NO_REPLY)
            self.said.emit(why, "info")
            return
        closed = self.recorder.last_closed if job.answer_now.asked else None
        self._proof = self._engine.task(lambda _model, session, task: prove(session, task, job, reply, closed))
        self.said.emit(tr("Proving the last reply…"), "info")
        self._progress.start()
        self._show_buttons()

    @Slot()
    def measure(self) -> None:
        """Measure plain decoding on the last prompt."""
        job = self.recorder.last_job
        if job is None or self._engine.busy:
            busy = mark("The engine is busy; measure when it is done.")
            self.said.emit(tr(busy if job is not None else _NO_REPLY), "info")
            return
        tokens = sum(len(record.committed) for record in self._inspector.model.log)
        self._measure = self._engine.task(lambda _model, session, task: measure_plain(session, task, job, tokens))
        self._show_buttons()

    def stop(self) -> bool:
        """Stop proving and measuring; false if nothing of the kind runs."""
        running = [task for task in (self._proof, self._measure) if task is not None]
        for task in running:
            task.cancel.cancel()
        return bool(running)

    @Slot(object)
    def _on_task_ended(self, task: TaskJob) -> None:
        if task is self._proof:
            self._proof = None
            self._progress.stop()
            if isinstance(task.result, Proof):
                self.said.emit(verdict(task.result), "info" if task.result.check.passed else "error")
            else:
                self.said.emit(task.problem or tr("The proof was stopped."), "warning")
        elif task is self._measure:
            self._measure = None
            if isinstance(task.result, Finished):
                self._inspector.show_plain(task.result.stats.tokens_per_s)
            elif task.problem:
                self.said.emit(task.problem, "warning")
        self._show_buttons()

    @Slot()
    def _show_progress(self) -> None:
        if self._proof is not None and (news := self._proof.mailbox.drain()):
            done, total = getattr(news[-1], "done", 0), getattr(news[-1], "total", 0)
            percent = 100 * done // max(1, total)
            self.said.emit(tr("Proving the last reply: {percent} %…", percent=percent), "info")

    @Slot()
    def _show_buttons(self) -> None:
        ready = self.recorder.last_job is not None and not self.showing_run
        if self._measure is not None:
            self._inspector.show_button(False, tr("Measuring plain decoding…"))
        else:
            self._inspector.show_button(ready)


def is_run(path: Path) -> bool:
    """Whether a dropped file may be a run, by its name."""
    return path.suffix.lower() == SUFFIX
