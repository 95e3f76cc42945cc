"""Works out plans in a thread of its own: headers are read and the disk is measured, which takes up to a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal, Slot

from engine import Cancelled, CancelToken, EngineError

if TYPE_CHECKING:
    from engine import BudgetRange, Machine

USUAL_CONTEXT = 32_768
"""Tokens of the conversation whose memory is shown: few fill the longest contexts."""

PlanRange = Callable[..., "BudgetRange"]


def plan_range(*arguments: Any, **options: Any) -> BudgetRange:
    """`engine.plan_range`, imported when called: only the planning thread waits for what comes with it."""
    import engine

    return engine.plan_range(*arguments, **options)


class Plans(QObject):
    """One question at a time; a new one takes the place of the one before."""

    ready = Signal(object)  # BudgetRange
    failed = Signal(str)
    _answered = Signal(object, object, str)  # CancelToken, BudgetRange | None, problem

    def __init__(self, plan: PlanRange = plan_range, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._plan = plan
        self._pool = QThreadPool()
        self._pool.setMaxThreadCount(1)
        self._asked: CancelToken | None = None
        self._machines: dict[Path, Machine] = {}
        self._answered.connect(self._on_answer)

    @property
    def busy(self) -> bool:
        """A plan is being worked out."""
        return self._asked is not None

    def ask(self, path: Path, sidecar: Path | None = None, held: int = 0) -> None:
        """Plan budgets for a checkpoint; `ready` or `failed` answers, unless something else is asked before. `held`:
        bytes of memory that its weights hold now."""
        self.forget()
        token = self._asked = CancelToken()

        def work() -> None:
            plans, problem = None, ""
            try:
                machine = self._machines.get(path)
                plans = self._plan(path, sidecar, context=USUAL_CONTEXT, machine=machine, held=held, cancel=token)
            except Cancelled:
                pass
            except EngineError as error:
                problem = str(error)
            self._answered.emit(token, plans, problem)

        self._pool.start(QRunnable.create(work))

    def forget(self) -> None:
        """Nobody waits for an answer any more."""
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def close(self, milliseconds: int = 2000) -> bool:
        """End the thread; whether it has ended in time."""
        self.forget()
        return self._pool.waitForDone(milliseconds)

    @Slot(object, object, str)
    def _on_answer(self, token: CancelToken, plans: BudgetRange | None, problem: str) -> None:
        if token is not self._asked:
            return
        self._asked = None
        if plans is not None:
            self._machines[plans.path] = plans.machine
            self.ready.emit(plans)
        elif problem:
            self.failed.emit(problem)
