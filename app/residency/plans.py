"""Works out plans in a thread of its own: headers are read and the disk is measured, which takes up to a second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.courier import Courier
from engine import Cancelled, CancelToken, EngineError

if TYPE_CHECKING:
    from engine import BudgetRange, KvCache, Machine

USUAL_CONTEXT = 32_768
"""Tokens of the conversation whose memory is shown: few fill the longest contexts."""

PlanRange = Callable[..., "BudgetRange"]


def plan_range(*arguments: Any, **options: Any) -> BudgetRange:
    """`engine.plan_range`, imported when called: only the planning thread waits for what comes with it."""
    import engine

    return engine.plan_range(*arguments, **options)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the thread found out about a question; neither a plan nor a problem if it was called off."""

    token: CancelToken
    plans: BudgetRange | None = None
    problem: str = ""


class Plans(QObject):
    """One question at a time; a new one takes the place of the one before."""

    ready = Signal(object)  # BudgetRange
    failed = Signal(str)

    def __init__(self, plan: PlanRange = plan_range, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._plan = plan
        self._one_at_a_time = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked: CancelToken | None = None
        self._machines: dict[Path, Machine] = {}
        self._courier = Courier(self)
        self._courier.brought.connect(self._on_answer)

    @property
    def busy(self) -> bool:
        """A plan is being worked out."""
        return self._asked is not None

    def ask(self, path: Path, sidecar: Path | None = None, held: int = 0, kv_cache: KvCache = "f32") -> None:
        """Plan budgets for a checkpoint; `ready` or `failed` answers, unless something else is asked before. `held`:
        bytes of memory that its weights hold now; `kv_cache`: what keys and values are stored as."""
        self.forget()
        token = self._asked = CancelToken()
        # The thread gets nothing of Qt: it may outlive the window, and this object with it.
        plan, turn, put = self._plan, self._one_at_a_time, self._courier.box.put
        machine = self._machines.get(path)
        beside = {"context": USUAL_CONTEXT, "kv_cache": kv_cache}
        options = {"machine": machine, "held": held, "cancel": token, **beside}

        def work() -> None:
            with turn:
                put(_answer(token, lambda: plan(path, sidecar, **options)))

        self._courier.expect()
        self._thread = threading.Thread(target=work, name="plans", daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """Nobody waits for an answer any more."""
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None
        self._courier.rest()

    def close(self, milliseconds: int = 2000) -> bool:
        """End the thread; whether it has ended in time."""
        self.forget()
        if self._thread is not None:
            self._thread.join(milliseconds / 1000)
        return self._thread is None or not self._thread.is_alive()

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if answer.token is not self._asked:
            return
        self._asked = None
        self._courier.rest()
        if answer.plans is not None:
            self._machines[answer.plans.path] = answer.plans.machine
            self.ready.emit(answer.plans)
        elif answer.problem:
            self.failed.emit(answer.problem)


def _answer(token: CancelToken, plan: Callable[[], BudgetRange]) -> Answer:
    try:
        token.check()
        return Answer(token, plan())
    except Cancelled:
        return Answer(token)
    except EngineError as error:
        return Answer(token, problem=str(error))
