"""Ending the thinking: the button beside its label, the command, the budget, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractScrollArea, QPushButton
from pytestqt.qtbot import QtBot

import engine
from app.chat.answer_now import ASK, ASKED
from app.chat.controller import ChatController
from app.help.commands import action_commands
from app.history.chats import Chats
from app.history.store import Store
from app.jobs import ReplyJob, SessionLike, TaskJob
from app.main_window import MainWindow
from app.runs.experiments import Proof, closed_thought, prove
from app.worker import EngineHandle
from engine import DraftOptions, GenerateOptions, Round, SamplingOptions
from tests.app.conftest import PATIENCE_MS
from tests.app.scripted import WORDS, Script

THOUGHTS = ["<think>\n", "Let", " me", " see."]


def button(view: QAbstractScrollArea) -> QPushButton:
    return next(b for b in view.findChildren(QPushButton) if b.text() in (ASK, ASKED))


def begin(qtbot: QtBot, window: MainWindow, script: Script, thoughts: list[str]) -> None:
    script.thoughts = thoughts
    window.send("hello")
    qtbot.waitUntil(lambda: window.controller.thinking, timeout=PATIENCE_MS)


@pytest.mark.parametrize("reading", [False, True])
def test_the_button_stands_beside_the_thinking_and_ends_it(
    qtbot: QtBot, loaded: MainWindow, script: Script, reading: bool
) -> None:
    if reading:
        loaded.switch_view()
    view = loaded.reading if reading else loaded.view
    begin(qtbot, loaded, script, THOUGHTS)
    ask = button(view)
    qtbot.waitUntil(ask.isVisible, timeout=PATIENCE_MS)
    row = view.thinking_row()
    assert row is not None
    assert abs(ask.geometry().center().y() - view.viewport().geometry().top() - row.center().y()) <= 2
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        qtbot.mouseClick(ask, Qt.MouseButton.LeftButton)
        assert (ask.text(), ask.isEnabled()) == (ASKED, False)
    assert not ask.isVisible()
    assert " ".join(WORDS) in loaded.transcript.plain_text()


def test_the_button_stays_in_sight_when_the_label_scrolls_away(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    begin(qtbot, loaded, script, ["<think>\n", *(f"line {n}\n" for n in range(200))])
    ask = button(loaded.view)
    qtbot.waitUntil(lambda: (loaded.view.thinking_row() or ask.rect()).bottom() < 0, timeout=PATIENCE_MS)
    assert ask.isVisible()
    assert loaded.view.rect().contains(ask.geometry())


def test_the_key_and_the_palette_ask_too_and_only_while_it_thinks(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    action = loaded.actions_by_name["answer_now"]
    assert not action.isEnabled()
    begin(qtbot, loaded, script, THOUGHTS)
    assert action.isEnabled()
    commands = action_commands(loaded.actions_by_name)
    assert any(command.text.startswith("Answer now") and command.enabled for command in commands)
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_N, keys)
    assert not action.isEnabled()


def test_the_budget_reaches_the_engine_and_is_remembered(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    loaded.panel.think_budget.setValue(64)
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        loaded.send("hello")
    assert script.options[-1].think_budget == 64
    assert loaded.memory.settings.reply.think_budget == 64
    loaded.panel.think_budget.setValue(0)
    assert loaded.memory.settings.reply.think_budget is None


@pytest.fixture
def demo(qtbot: QtBot, tmp_path: Path) -> Iterator[ChatController]:
    """The demo in a real engine thread, which would think for ever: the end of a thought is forbidden to it."""
    handle, store = EngineHandle(engine.load_model), Store(tmp_path / "history.sqlite3")
    close = 0

    def options() -> GenerateOptions:
        sampling = SamplingOptions(logit_bias={close: -1e4})
        return GenerateOptions(sampling, DraftOptions(), max_new_tokens=4000, thinking=True, ignore_eos=True)

    chat = ChatController(handle, options, Chats(store))
    with qtbot.waitSignal(chat.loaded, timeout=120_000):
        chat.load(engine.demo_path(), None)
    with qtbot.waitSignal(handle.task_ended, timeout=PATIENCE_MS):
        job = handle.task(lambda model, _session, _job: model.tokenizer.id_of("</think>"))  # type: ignore[attr-defined]
    assert isinstance(job.result, int)
    close = job.result
    yield chat
    handle.close()
    assert handle.wait(PATIENCE_MS)
    chat.leave()


def test_the_demo_answers_when_it_is_asked_to_and_the_reply_says_so(qtbot: QtBot, demo: ChatController) -> None:
    rounds: list[Round] = []
    demo.records.connect(lambda records: rounds.extend(r for r in records if isinstance(r, Round)))
    demo.changed.connect(demo.answer_now)  # as soon as it is known to think
    jobs: list[ReplyJob] = []
    demo.engine.reply_ended.connect(jobs.append)
    with qtbot.waitSignal(demo.reply_ended, timeout=60_000) as ended:
        demo.send("What is the capital of France?")
        qtbot.waitUntil(lambda: bool(rounds) and rounds[-1].phase == "answer", timeout=60_000)
        demo.stop()
    phases = [token.phase for record in rounds for token in record.committed]
    assert phases == sorted(phases, reverse=True)
    assert phases[0] == "think"
    reply = ended.args[0]
    assert any("closed at your request" in note for note in reply.notes)
    closed = closed_thought(rounds)
    assert closed is not None
    assert 0 < closed < phases.count("think")

    def proof(session: SessionLike | None, task: TaskJob, closed: int | None) -> Proof:
        return prove(session, task, job, reply, closed)

    job = next(iter(jobs))
    for known in (closed, None):
        with qtbot.waitSignal(demo.engine.task_ended, timeout=60_000):
            task = demo.engine.task(lambda _model, session, task, known=known: proof(session, task, known))  # type: ignore[misc]
        assert task.problem == ""
        assert isinstance(task.result, Proof)
        assert task.result.check.passed
        assert task.result.same is (known is not None), "the thought ends again where the person had ended it"
