"""The memory of the weights, for the window: panel, watch, and what a chosen budget sets going."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.controller import ChatController
from app.jobs import ModelLike, SessionLike, TaskJob
from app.memory import Memory
from app.residency.glance import Glance
from app.residency.panel import MemoryPanel
from app.residency.watch import Watch
from app.theme import Theme
from app.worker import EngineHandle
from engine import Cancelled, LoadOptions, LoadProgress, ReadError, Record

if TYPE_CHECKING:
    from engine import MemoryBudget, ModelInfo


class MemoryDesk(QObject):
    """Remembers the budget of each checkpoint, loads with it, and changes it while a model is loaded."""

    problem = Signal(str)
    load_requested = Signal(object, object)  # Path, Path | None

    def __init__(self, engine: EngineHandle, memory: Memory, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._memory = memory
        self.panel = MemoryPanel(theme)
        self.panel.kv_for_next = lambda: memory.settings.load.kv_cache
        self.watch = Watch(engine.look, parent=self)
        self._info: ModelInfo | None = None
        self._job: TaskJob | None = None
        self._asked: tuple[Path, MemoryBudget] | None = None
        engine.options_for = self.options
        engine.task_ended.connect(self._on_task_ended)
        self.watch.looked.connect(self._on_looked)
        self.panel.budget_chosen.connect(self.change)
        self.panel.load_requested.connect(self._load)

    def follow(self, chat: ChatController) -> None:
        """Show what this chat's rounds cost, and the weights of its model."""
        chat.records.connect(self._on_records)
        chat.plots_due.connect(self.panel.refresh)
        chat.loaded.connect(self.show_model)
        chat.reply_began.connect(self.watch.heard)

    def sentence(self, doing: str) -> str:
        """What goes on in a pass that takes long, `doing` being what it is for; empty while all goes quickly."""
        return self.watch.sentence(doing)

    def apply_theme(self, theme: Theme) -> None:
        self.panel.apply_theme(theme)

    def close(self) -> None:
        """Look and plan no more."""
        self.watch.stop()
        self.panel.plans.close()

    def options(self, path: Path) -> LoadOptions:
        """How a checkpoint is loaded: with the budget that was chosen for it, or an automatic one."""
        return LoadOptions(memory_budget=self._memory.settings.budgets.get(str(path), "auto"))

    @Slot(object)
    def show_model(self, info: ModelInfo) -> None:
        """A model has been loaded."""
        self._info = info
        self.watch.start()
        self.panel.show_model(info)

    @Slot(object)
    def change(self, budget: MemoryBudget) -> None:
        """Give the model in use another budget, once a reply that runs has ended."""
        if self._info is None or self._job is not None:
            return
        self._asked = Path(self._info.path), budget
        self.panel.budget.show_busy(True)
        self._job = self._engine.task(changing(budget, self.panel.least_budget))

    @Slot(object, object, object)
    def _load(self, path: Path, sidecar: Path | None, budget: MemoryBudget) -> None:
        self._remember(path, budget)
        self.load_requested.emit(path, sidecar)

    def _remember(self, path: Path, budget: MemoryBudget) -> None:
        others = {key: value for key, value in self._memory.settings.budgets.items() if key != str(path)}
        self._memory.change(budgets=others if budget == "auto" else {**others, str(path): budget})

    @Slot(object)
    def _on_task_ended(self, job: TaskJob) -> None:
        if job is not self._job or self._asked is None:
            return
        self._job = None
        self.panel.budget.show_busy(False)
        if job.problem:
            self.problem.emit(job.problem)
        elif job.result is not None:
            self._remember(*self._asked)
        self.watch.look()
        self.panel.plan_again()

    @Slot(object)
    def _on_records(self, records: tuple[Record, ...]) -> None:
        self.watch.heard()
        self.panel.add_records(records)

    @Slot(object)
    def _on_looked(self, glance: Glance) -> None:
        if self.panel.isVisible():
            self.panel.show_glance(glance, self.watch.speed)
        if self._job is not None:
            for record in self._job.mailbox.drain():
                if isinstance(record, LoadProgress):
                    self.panel.show_progress(record)


def changing(budget: MemoryBudget, least: int | None) -> Callable[[ModelLike, SessionLike | None, TaskJob], bool]:
    """The task that changes the budget. If it is stopped or the disk fails, the model goes on with the `least`."""

    def work(model: ModelLike, _session: SessionLike | None, job: TaskJob) -> bool:
        def tell(done: int, total: int) -> None:
            doing = "reading weights"  # not translated: not shown
            job.mailbox.put(LoadProgress("weights", doing, done, total, "bytes"))

        try:
            model.set_budget(budget, tell, job.cancel)
        except (Cancelled, ReadError):
            model.set_budget(least)
            raise
        return True

    return work
