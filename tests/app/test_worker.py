"""The engine's thread: order of commands, Stop that needs no slot, failures that leave the last model in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QThread, Signal, Slot
from pytestqt.qtbot import QtBot

from app.jobs import LoadOutcome
from app.worker import EngineHandle
from engine import CancelToken, Failed, Finished, GenerateOptions, LoadProgress, Message, Round
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import Script

HELLO = (Message("user", "hello"),)


def load(qtbot: QtBot, handle: EngineHandle, name: str = "first") -> LoadOutcome:
    with qtbot.waitSignal(handle.load_ended, timeout=PATIENCE_MS) as blocker:
        handle.load(Path("/models") / name)
    outcome = blocker.args[1]
    assert isinstance(outcome, LoadOutcome)
    return outcome


def reply(qtbot: QtBot, handle: EngineHandle) -> tuple[object, ...]:
    with qtbot.waitSignal(handle.reply_ended, timeout=PATIENCE_MS):
        job = handle.reply(HELLO, GenerateOptions())
    return job.mailbox.drain()


def test_a_load_reports_progress_and_the_model(qtbot: QtBot, handle: EngineHandle) -> None:
    with qtbot.waitSignal(handle.load_ended, timeout=PATIENCE_MS) as blocker:
        job = handle.load(Path("/models/first"))
    assert blocker.args[0] is job
    assert blocker.args[1].info.name == "first"
    (progress,) = job.mailbox.drain()
    assert isinstance(progress, LoadProgress)
    assert progress.message == "preparing kernels for this CPU: 3 of 3"


def test_a_reply_is_rounds_and_one_end(qtbot: QtBot, handle: EngineHandle) -> None:
    load(qtbot, handle)
    *rounds, last = reply(qtbot, handle)
    assert isinstance(last, Finished)
    said = "".join(token.text for record in rounds if isinstance(record, Round) for token in record.committed)
    assert said == last.text


def test_the_session_is_kept_between_replies_and_forgotten_when_asked(
    qtbot: QtBot, handle: EngineHandle, script: Script
) -> None:
    load(qtbot, handle)
    reply(qtbot, handle)
    reply(qtbot, handle)
    handle.forget_session()
    reply(qtbot, handle)
    assert script.calls == ["load first", "session", "reply", "reply", "session", "reply"]


def test_a_failed_load_leaves_the_model_in_use(qtbot: QtBot, handle: EngineHandle, script: Script) -> None:
    load(qtbot, handle)
    script.load_problem = "layers.3.mlp.up_proj.weight is missing."
    outcome = load(qtbot, handle, "second")
    assert outcome == LoadOutcome(problem=script.load_problem)
    assert "close first" not in script.calls
    assert isinstance(reply(qtbot, handle)[-1], Finished)


def test_a_new_model_takes_the_place_of_the_old_one_only_when_whole(
    qtbot: QtBot, handle: EngineHandle, script: Script
) -> None:
    load(qtbot, handle)
    load(qtbot, handle, "second")
    assert script.calls == ["load first", "load second", "close first"]


def test_a_cancelled_load_ends_without_problem_and_without_model(
    qtbot: QtBot, handle: EngineHandle, script: Script
) -> None:
    script.hold_load = True
    with qtbot.waitSignal(handle.load_ended, timeout=PATIENCE_MS) as blocker:
        job = handle.load(Path("/models/first"))
        assert script.started.wait(5)
        job.cancel.cancel()
    assert blocker.args[1] == LoadOutcome()


def test_a_load_that_did_not_hear_the_cancel_is_undone(qtbot: QtBot, handle: EngineHandle, script: Script) -> None:
    load(qtbot, handle)
    script.hold_load, script.deaf, script.load_steps = True, True, 1
    with qtbot.waitSignal(handle.load_ended, timeout=PATIENCE_MS) as blocker:
        job = handle.load(Path("/models/second"))
        assert script.started.wait(5)
        job.cancel.cancel()
        script.go.set()
    assert blocker.args[1] == LoadOutcome()
    assert script.calls[-1] == "close second"


def test_stop_works_in_the_middle_of_a_round_and_keeps_what_was_said(
    qtbot: QtBot, handle: EngineHandle, script: Script
) -> None:
    load(qtbot, handle)
    script.hold_after = 2
    with qtbot.waitSignal(handle.reply_ended, timeout=PATIENCE_MS):
        job = handle.reply(HELLO, GenerateOptions())
        assert script.started.wait(5)
        job.cancel.cancel()
    last = job.mailbox.drain()[-1]
    assert isinstance(last, Finished)
    assert last.stats.stop_reason == "cancelled"
    assert last.text.startswith("The capital of France")


@pytest.mark.parametrize("fault", ["raise", "silence"])
def test_a_reply_always_ends_in_a_record(qtbot: QtBot, handle: EngineHandle, script: Script, fault: str) -> None:
    faults: list[str] = []
    handle.fault.connect(faults.append)
    script.raise_after, script.silent_end = (1, False) if fault == "raise" else (None, True)
    load(qtbot, handle)
    last = reply(qtbot, handle)[-1]
    assert isinstance(last, Failed)
    assert last.message.endswith(".")
    assert ("ZeroDivisionError" in "".join(faults)) == (fault == "raise")
    script.raise_after, script.silent_end = None, False
    assert isinstance(reply(qtbot, handle)[-1], Finished), "the thread goes on after a fault"
    assert script.calls.count("session") == 2, "a session that broke is not used again"


def test_a_fault_while_loading_is_told_and_reported(qtbot: QtBot, handle: EngineHandle, script: Script) -> None:
    faults: list[str] = []
    handle.fault.connect(faults.append)
    script.load_surprise = True
    assert "a fault that nobody foresaw" in load(qtbot, handle).problem
    assert len(faults) == 1


def test_a_reply_without_a_model_says_so(qtbot: QtBot, handle: EngineHandle) -> None:
    (last,) = reply(qtbot, handle)
    assert isinstance(last, Failed)
    assert last.message == "No model is loaded; choose one first."


def test_closing_stops_a_reply_and_frees_the_model(qtbot: QtBot, handle: EngineHandle, script: Script) -> None:
    load(qtbot, handle)
    script.hold_after = 0
    handle.reply(HELLO, GenerateOptions())
    assert script.started.wait(5)
    with qtbot.waitSignal(handle.closed, timeout=PATIENCE_MS):
        handle.close()
    assert not handle.running
    assert script.calls[-1] == "close first"


class Emitter(QObject):
    """Emits from another thread; some pairs of Python and Qt lose a reference to True each time and abort."""

    counted = Signal(bool)

    @Slot()
    def emit_all(self) -> None:
        for _ in range(5000):
            self.counted.emit(True)


class Counter(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @Slot(bool)
    def add(self, _value: bool) -> None:
        self.count += 1


def test_five_thousand_signals_cross_threads(qtbot: QtBot) -> None:
    thread, emitter, counter = QThread(), Emitter(), Counter()
    emitter.moveToThread(thread)
    thread.started.connect(emitter.emit_all)
    emitter.counted.connect(counter.add)
    thread.start()
    qtbot.waitUntil(lambda: counter.count == 5000, timeout=PATIENCE_MS)
    thread.quit()
    assert thread.wait(PATIENCE_MS)


def test_each_job_has_a_token_of_its_own(handle: EngineHandle, script: Script) -> None:
    script.hold_load = True
    first, second = handle.load(Path("/models/a")), handle.load(Path("/models/b"))
    first.cancel.cancel()
    assert not second.cancel.cancelled
    assert isinstance(second.cancel, CancelToken)
