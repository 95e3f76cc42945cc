"""What threads find out reaches the window, and harms nothing when the window has gone."""

from __future__ import annotations

import threading
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.courier import Courier
from app.residency.plans import Plans
from engine import BudgetRange, EngineError
from tests.app.conftest import PATIENCE_MS


def bury(thing: QObject) -> None:
    """Have Qt delete it now, as it does with a window's parts."""
    thing.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_things_come_in_order_in_the_windows_thread(qapp: QApplication, qtbot: QtBot) -> None:
    courier = Courier(qapp)
    got: list[tuple[int, bool]] = []
    here = threading.get_ident()
    courier.brought.connect(lambda number: got.append((number, threading.get_ident() == here)))
    courier.expect()
    thread = threading.Thread(target=lambda put=courier.box.put: [put(n) for n in range(50)])
    thread.start()
    thread.join()
    assert not got, "the thread itself calls nobody"
    qtbot.waitUntil(lambda: len(got) == 50)
    assert got == [(n, True) for n in range(50)]
    bury(courier)


def test_what_comes_after_nobody_waits_any_more_is_thrown_away(qapp: QApplication, qtbot: QtBot) -> None:
    courier = Courier(qapp)
    got: list[str] = []
    courier.brought.connect(got.append)
    late = courier.box
    courier.expect()
    courier.rest()
    late.put("late")
    courier.expect()
    courier.box.put("new")
    qtbot.waitUntil(lambda: bool(got))
    assert got == ["new"]
    bury(courier)


def test_a_plan_that_is_found_after_the_window_has_gone(qapp: QApplication) -> None:
    go, begun = threading.Event(), threading.Event()

    def plan(*_arguments: object, **_options: object) -> BudgetRange:
        begun.set()
        go.wait(10)
        raise EngineError("too late")

    plans = Plans(plan)
    plans.ask(Path("x"))
    assert begun.wait(10)
    thread = plans._thread
    bury(plans)
    go.set()
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    qapp.processEvents()


def test_many_windows_go_while_their_threads_answer(qapp: QApplication) -> None:
    """With signals sent by the threads this ended the process within some hundred rounds."""
    for _ in range(200):
        begun = threading.Event()

        def plan(*_arguments: object, begun: threading.Event = begun, **_options: object) -> BudgetRange:
            begun.set()
            raise EngineError("no such file")

        plans = Plans(plan)
        plans.ask(Path("x"))
        assert begun.wait(10)
        bury(plans)
        del plans
    qapp.processEvents()


def test_a_new_question_takes_the_place_of_the_old_one(qapp: QApplication, qtbot: QtBot) -> None:
    def plan(path: Path, *_arguments: object, **_options: object) -> BudgetRange:
        raise EngineError(path.name)

    plans = Plans(plan)
    told: list[str] = []
    plans.failed.connect(told.append)
    for name in ("a", "b", "c"):
        plans.ask(Path(name))
    qtbot.waitUntil(lambda: not plans.busy, timeout=PATIENCE_MS)
    assert told == ["c"]
    assert plans.close()
