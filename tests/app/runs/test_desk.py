"""Runs in the window: each reply kept, opened without a model, scrubbed through, compared, proved and measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.chat.cells import CellKind
from app.main_window import MainWindow
from app.runs.store import RunStore
from engine import Round
from tests.app.chat import scripted_records as script
from tests.app.conftest import PATIENCE_MS
from tests.app.runs.test_store import HEADER
from tests.app.scripted import WORDS, Script


def answered(window: MainWindow, qtbot: QtBot, text: str = "Hello") -> None:
    with qtbot.waitSignals([window.controller.reply_ended, window.runs.recorder.kept], timeout=PATIENCE_MS):
        window.send(text)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return RunStore(tmp_path / "elsewhere").write(HEADER, script.reply(thinking=script.THINKING))


def test_every_reply_is_kept_with_what_was_asked(loaded: MainWindow, qtbot: QtBot) -> None:
    answered(loaded, qtbot)
    answered(loaded, qtbot, "Again")
    prompts = {summary.prompt for summary in loaded.runs.store.summaries()}
    assert prompts == {"Hello", "Again"}
    assert all(summary.stats.emitted == len(WORDS) for summary in loaded.runs.store.summaries())


def test_a_run_opens_without_a_model_and_feeds_transcript_and_inspector(window: MainWindow, run: Path) -> None:
    window.open_dropped([run])
    assert window.runs.stack.currentWidget() is window.runs.run
    reply = window.runs.run.transcript.last_reply
    assert reply is not None
    assert reply.text == script.THINKING + script.ANSWER
    assert window.inspector.model.rounds == sum(r.index > 0 for r in reply.rounds)
    window.runs.show_chat()
    assert window.inspector.model.rounds == 0


def test_what_is_no_run_is_said(window: MainWindow, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nonsense\n")
    window.open_dropped([bad])
    assert "bad.jsonl" in window.message_bar.text
    assert window.runs.stack.currentIndex() == 0


def test_scrubbing_shows_the_state_at_that_round(window: MainWindow, run: Path) -> None:
    window.runs.open_path(run)
    view, reply = window.runs.run.view, window.runs.run.transcript.last_reply
    assert reply is not None
    window.actions_by_name["previous_round"].trigger()
    window.actions_by_name["previous_round"].trigger()
    moment = view.painter.moment
    assert moment is not None
    assert moment.travel
    assert reply.round_of(moment.first) == len(reply.rounds) - 2
    assert reply.round_of(moment.end) == len(reply.rounds) - 1, "the last round is not said yet"
    window.actions_by_name["all_rounds"].trigger()
    assert view.painter.moment is None


def test_clicking_a_token_selects_its_round_everywhere(window: MainWindow, run: Path, qtbot: QtBot) -> None:
    window.runs.open_path(run)
    view, reply = window.runs.run.view, window.runs.run.transcript.last_reply
    assert reply is not None
    entry = next(i for i, e in enumerate(view.model.entries) if e is reply)
    view.fold_thinking(entry, False)
    seen = view.viewport().rect()
    cell = next(
        i
        for i in range(20, len(reply))
        if reply.kind(i) is CellKind.CORRECTION and seen.contains(view.rect_of(entry, i))
    )
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.rect_of(entry, cell).center())
    record = reply.rounds[reply.round_of(cell)]
    number = window.inspector.model.number_of(record)
    assert window.inspector.scrubber.number == number
    assert window.inspector.plots.time._mark.value() == number
    window.inspector.tabs.setCurrentWidget(window.inspector.table)
    assert [i.row() for i in window.inspector.table.selectionModel().selectedRows()] == [(number or 0) - 1]
    moment = view.painter.moment
    assert moment is not None
    assert not moment.travel
    assert moment.first <= cell < moment.end


def test_finished_thinking_is_folded_and_a_round_inside_unfolds_it(window: MainWindow, run: Path) -> None:
    window.runs.open_path(run)
    view, reply = window.runs.run.view, window.runs.run.transcript.last_reply
    assert reply in view.document.folded
    window.inspector.scrubber.go(2)
    assert reply not in view.document.folded


def test_a_message_brings_the_chat_back(loaded: MainWindow, qtbot: QtBot, run: Path) -> None:
    answered(loaded, qtbot)
    rounds = loaded.inspector.model.rounds
    loaded.runs.open_path(run)
    assert loaded.inspector.model.rounds != rounds
    answered(loaded, qtbot, "More")
    assert loaded.runs.stack.currentIndex() == 0
    assert loaded.inspector.model.rounds == 2 * rounds


def test_no_message_of_the_chat_is_deleted_behind_a_run(loaded: MainWindow, qtbot: QtBot, run: Path) -> None:
    answered(loaded, qtbot)
    delete = loaded.actions_by_name["message_delete"]
    assert delete.isEnabled()
    loaded.runs.open_path(run)
    assert not delete.isEnabled()
    loaded.runs.show_chat()
    assert delete.isEnabled()


def test_two_runs_of_the_list_are_compared(loaded: MainWindow, qtbot: QtBot, script: Script) -> None:
    answered(loaded, qtbot)
    script.words = (*WORDS[:5], "Rome,", *WORDS[6:])
    loaded.new_chat()
    answered(loaded, qtbot)
    loaded.docks.toggle("show_runs")
    panel = loaded.runs.panel
    panel.table.selectAll()
    assert panel.compare.isEnabled()
    panel.compare.click()
    comparison = loaded.runs.comparison
    assert loaded.runs.stack.currentWidget() is comparison
    assert comparison.comparison is not None
    assert comparison.comparison.parting is not None
    for side in comparison.sides:
        at = side.view.cursor_cell
        assert at is not None
        reply = side.transcript.last_reply
        assert reply is not None
        assert reply.texts[at[1]] in (" Paris,", " Rome,")
    assert comparison.figures.rowCount() == len(comparison.comparison.deltas)
    assert comparison.progress.table()[1]


def test_a_kept_run_can_be_deleted(loaded: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    from PySide6.QtWidgets import QMessageBox

    answered(loaded, qtbot)
    loaded.docks.toggle("show_runs")
    loaded.runs.panel.table.selectRow(0)
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Yes)
    loaded.runs.panel.delete.click()
    assert loaded.runs.panel.runs.rowCount(QModelIndex()) == 0
    assert loaded.runs.store.summaries() == []


def test_the_last_reply_is_proved(loaded: MainWindow, qtbot: QtBot, script: Script) -> None:
    loaded.actions_by_name["prove"].trigger()
    assert "no reply" in loaded.message_bar.text
    answered(loaded, qtbot)
    with qtbot.waitSignal(loaded.engine.task_ended, timeout=PATIENCE_MS):
        loaded.actions_by_name["prove"].trigger()
    assert loaded.message_bar.text.startswith("Proved: 3 rows compared, 3 identical")
    assert script.calls[-2:] == ["reply", "check"]
    assert script.options[-1].provable
    assert not script.options[0].provable, "a reply that nobody proves costs nothing"


def test_plain_decoding_is_measured_on_the_last_prompt(loaded: MainWindow, qtbot: QtBot, script: Script) -> None:
    answered(loaded, qtbot)
    cost = loaded.inspector.plots.cost
    loaded.inspector.refresh()
    assert cost.speed_up is None
    with qtbot.waitSignal(loaded.engine.task_ended, timeout=PATIENCE_MS):
        cost.measure_requested.emit()
    assert script.options[-1].draft.drafter == "none"
    assert cost.plain is not None
    cost.show_model(loaded.inspector.model)  # a card that is scrolled out of sight is drawn when it is seen
    assert cost.speed_up == pytest.approx(1.0), "the script is as fast without drafts"
    assert "plain decoding" in cost.words.text()


def test_rounds_of_the_chat_are_not_mixed_with_those_of_an_open_run(
    loaded: MainWindow, qtbot: QtBot, script: Script, run: Path
) -> None:
    script.hold_after = 2
    loaded.send("Hello")
    qtbot.waitUntil(lambda: script.started.is_set() and loaded.inspector.model.rounds > 0, timeout=PATIENCE_MS)
    loaded.runs.open_path(run)
    of_run = loaded.inspector.model.rounds
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        script.go.set()
    assert loaded.inspector.model.rounds == of_run
    loaded.runs.show_chat()
    chat = loaded.transcript.last_reply
    assert chat is not None
    shown = [r for r in chat.rounds if isinstance(r, Round) and r.index > 0]
    assert loaded.inspector.model.log == shown


def test_a_long_run_is_shown_from_its_beginning(loaded: MainWindow, qtbot: QtBot, script: Script) -> None:
    script.words = tuple(f"word{n}" for n in range(900))
    answered(loaded, qtbot)
    qtbot.waitUntil(lambda: len(loaded.runs.store.summaries()) == 1, timeout=PATIENCE_MS)
    loaded.runs.open_path(loaded.runs.store.summaries()[0].path)
    bar = loaded.runs.run.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and loaded.runs.run.view.document.waiting == 0, timeout=PATIENCE_MS)
    assert bar.value() == 0
