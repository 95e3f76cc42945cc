"""The window as a person uses it: load, ask, stop, drop files, change colours, close and come back."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.actions import ACTIONS, ShortcutSheet
from app.main_window import MainWindow
from app.theme import DARK, LIGHT
from tests.app.conftest import DEMO, PATIENCE_MS, MakeWindow
from tests.app.scripted import WORDS, Script


def ask(qtbot: QtBot, window: MainWindow, text: str = "hello") -> None:
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        window.composer.set_text(text)
        qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)


def drop(window: MainWindow, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, button, keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(window.rect().center(), copy, data, button, keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(window, QDropEvent(QPointF(window.rect().center()), copy, data, button, keys))


def test_a_reply_is_shown_token_by_token_and_counted(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded)
    assert " ".join(WORDS) in loaded.transcript.plain_text()
    assert loaded.pages.currentIndex() == 1
    assert loaded.status.per_round.text() == "2.20"
    assert loaded.status.context.text() == "32 of 4,096"
    assert loaded.status.activity.text() == "Ready"
    assert loaded.composer.text == ""


def test_stop_by_escape_keeps_the_text_and_says_so_below_it(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    script.hold_after = 2
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        loaded.send("hello")
        assert script.started.wait(5)
        assert loaded.composer.button.accessibleName() == "Stop (Esc)"
        qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_Escape)
    text = loaded.transcript.plain_text()
    assert "The capital of France" in text
    assert "Stopped." in text
    assert loaded.composer.button.accessibleName() == "Send (Enter)"


def test_a_failed_reply_says_why_in_the_message_area_until_dismissed(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    script.fail_after = 1
    ask(qtbot, loaded)
    assert loaded.message_bar.text == "Layer 3 gave NaN; open another checkpoint."
    assert loaded.message_bar.level == "error"
    qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_Escape)
    assert loaded.message_bar.text == ""


def test_a_failed_load_is_told_and_the_model_stays(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    script.load_problem = "model-00002.safetensors is truncated: 512 bytes are missing; copy it again."
    with qtbot.waitSignal(loaded.controller.load_failed, timeout=PATIENCE_MS):
        loaded.load(Path("/models/second"))
    assert loaded.message_bar.text == script.load_problem
    assert loaded.model_bar.button.accessibleName() == "Model: first"
    script.load_problem = ""
    ask(qtbot, loaded)
    assert " ".join(WORDS) in loaded.transcript.plain_text()


def test_loading_shows_what_it_does_and_can_be_cancelled(qtbot: QtBot, window: MainWindow, script: Script) -> None:
    script.hold_load = True
    window.load(Path("/models/first"))
    qtbot.waitUntil(lambda: window.model_bar.stage == "Preparing kernels for this CPU: 2 of 3", timeout=PATIENCE_MS)
    window.composer.set_text("asked early")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer.hint.text() == "Your message is sent as soon as the model is ready."
    with qtbot.waitSignal(window.controller.load_cancelled, timeout=PATIENCE_MS):
        qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    assert window.model_bar.stage == ""
    assert window.composer.text == "asked early"
    assert window.controller.model is None


def test_regenerate_and_new_chat_by_keyboard(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded, "one")
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    assert len(loaded.transcript.replies) == 1
    qtbot.keyClick(loaded.composer.edit, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert loaded.transcript.plain_text().strip() == ""
    assert loaded.pages.currentIndex() == 0


def test_settings_reach_the_engine(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    panel = loaded.panel
    panel.temperature.setValue(0.8)
    panel.new_seed.setChecked(False)
    panel.seed.setValue(11)
    panel.drafter.setCurrentIndex(panel.drafter.findData("ngram"))
    panel.tokens.setValue(6)
    panel.limit.setValue(77)
    ask(qtbot, loaded)
    options = script.options[-1]
    assert (options.sampling.temperature, options.sampling.seed, options.max_new_tokens) == (0.8, 11, 77)
    assert (options.draft.drafter, options.draft.tokens) == ("ngram", 6)
    assert loaded.status.drafting.text() == "lookup, 6"
    for group in panel.findChildren(QAbstractButton):
        if "to recommended" in group.accessibleName():
            group.click()
    ask(qtbot, loaded)
    assert (script.options[-1].sampling.greedy, script.options[-1].draft.tokens) == (True, 3)


def test_what_was_chosen_is_there_at_the_next_start(qtbot: QtBot, make_window: MakeWindow, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    first = make_window()
    with qtbot.waitSignal(first.controller.loaded, timeout=PATIENCE_MS):
        first.load(model, tmp_path / "mtp.safetensors")
    first.resize(760, 610)
    first.panel.tokens.setValue(5)
    first.refused.setChecked(False)
    first.composer.set_text("not sent yet")
    first.docks.toggle("show_inspector")
    with qtbot.waitSignal(first.closed, timeout=PATIENCE_MS):
        first.close()
    second = make_window()
    assert second.composer.text == "not sent yet"
    assert second.panel.tokens.value() == 5
    assert not second.view.show_refused
    assert second.docks.docks["show_inspector"].isHidden()
    assert (second.width(), second.height()) == (760, 610)
    assert second.memory.settings.recent[0].path == str(model)
    second.model_bar.menu.aboutToShow.emit()
    (entry,) = [action for action in second.model_bar.menu.actions() if action.text().startswith("model + mtp")]
    assert entry.text().endswith("(missing)")
    assert not entry.isEnabled()


def test_a_crash_loses_at_most_a_second_of_writing(qtbot: QtBot, make_window: MakeWindow) -> None:
    first = make_window()
    first.composer.set_text("nearly lost")
    qtbot.waitUntil(first.memory._file.path.exists, timeout=PATIENCE_MS)
    assert make_window().composer.text == "nearly lost"


def test_a_dropped_folder_is_loaded_and_a_dropped_sidecar_joins_it(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, script: Script
) -> None:
    sidecar = tmp_path / "mtp-small.safetensors"
    drop(window, sidecar)
    assert window.message_bar.text == "A sidecar goes with a checkpoint: open the checkpoint first."
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        drop(window, tmp_path)
    assert window.message_bar.text == ""
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS) as blocker:
        drop(window, sidecar)
    assert (blocker.args[0].path, blocker.args[0].sidecar) == (str(tmp_path), str(sidecar))


def test_other_dropped_files_are_refused_with_a_reason(window: MainWindow, tmp_path: Path) -> None:
    drop(window, tmp_path / "notes.txt")
    assert window.message_bar.text.startswith("notes.txt is no model")
    assert window.message_bar.level == "warning"


def test_the_theme_changes_live_and_everywhere(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded)
    light = loaded.grab().toImage()
    loaded.actions_by_name["theme_dark"].trigger()
    dark = loaded.grab().toImage()
    middle = loaded.view.geometry().center()
    assert light.pixelColor(5, loaded.height() - 5).name() == LIGHT.background
    assert dark.pixelColor(5, loaded.height() - 5).name() == DARK.background
    assert dark.pixelColor(loaded.view.mapTo(loaded, middle)).lightness() < 128
    assert loaded.actions_by_name["theme_dark"].isChecked()
    loaded.actions_by_name["switch_theme"].trigger()
    assert loaded.grab().toImage().pixelColor(5, loaded.height() - 5).name() == LIGHT.background
    assert loaded.memory.settings.theme == "light"


def test_the_colours_of_the_system_are_followed_live(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    window.set_theme_mode("system")
    monkeypatch.setattr("app.style.current_theme", lambda _app: DARK)
    QApplication.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert window.grab().toImage().pixelColor(5, window.height() - 5).name() == DARK.background
    assert window.actions_by_name["theme_system"].isChecked()


def test_the_focus_goes_from_top_to_bottom(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded)
    order, widget = [], loaded.model_bar.button
    while len(order) < 200:
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            order.append(widget)
        widget = widget.nextInFocusChain()
        if widget is loaded.model_bar.button:
            break
    places = [order.index(w) for w in (loaded.model_bar.button, loaded.view, loaded.refused, loaded.composer.edit)]
    assert places == sorted(places)
    assert order[order.index(loaded.composer.edit) + 1] is loaded.composer.button


def test_every_action_with_keys_is_on_the_sheet_and_no_two_share_keys(qtbot: QtBot, window: MainWindow) -> None:
    keys = [spec.keys for spec in ACTIONS if spec.keys]
    assert len(keys) == len(set(keys))
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_F1)
    (sheet,) = window.findChildren(ShortcutSheet)
    shown = {label.text() for label in sheet.findChildren(QWidget) if isinstance(label.property("text"), str)}
    assert {spec.text.replace("&", "") for spec in ACTIONS if spec.keys} <= shown
    sheet.close()


def test_f6_goes_round_the_panes(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded)
    loaded.docks.toggle("show_settings")
    qtbot.waitUntil(loaded.actions_by_name["show_settings"].isChecked)
    loaded.activateWindow()
    loaded.composer.edit.setFocus()
    seen = []
    for _ in range(5):
        qtbot.keyClick(loaded, Qt.Key.Key_F6)
        focus = loaded.focusWidget()
        panes = (loaded.model_bar, loaded.view, loaded.composer, loaded.panel, loaded.desk.sidebar)
        seen.append(next((i for i, pane in enumerate(panes) if pane is focus or pane.isAncestorOf(focus)), None))
    assert seen == [3, 4, 0, 1, 2]


def test_the_panels_open_close_and_come_to_the_front(qtbot: QtBot, window: MainWindow) -> None:
    inspector, settings = window.actions_by_name["show_inspector"], window.actions_by_name["show_settings"]
    qtbot.waitUntil(inspector.isChecked)
    settings.trigger()
    qtbot.waitUntil(lambda: settings.isChecked() and not inspector.isChecked())
    inspector.trigger()
    qtbot.waitUntil(lambda: inspector.isChecked() and not settings.isChecked())
    inspector.trigger()
    qtbot.waitUntil(lambda: not inspector.isChecked())
    assert window.docks.docks["show_inspector"].isHidden()


def test_plots_that_were_behind_another_panel_have_all_rounds_when_they_come_to_the_front(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    plots = loaded.inspector.plots
    ask(qtbot, loaded)
    qtbot.waitUntil(lambda: bool(plots.time.table()[1]), timeout=PATIENCE_MS)
    loaded.docks.toggle("show_memory")
    qtbot.waitUntil(lambda: loaded.inspector not in loaded.docks.in_sight(), timeout=PATIENCE_MS)
    ask(qtbot, loaded)
    qtbot.wait(300)
    loaded.docks.toggle("show_inspector")
    qtbot.waitUntil(lambda: len(plots.time.table()[1]) == loaded.inspector.model.rounds, timeout=PATIENCE_MS)


def test_every_control_has_a_name(qtbot: QtBot, loaded: MainWindow) -> None:
    ask(qtbot, loaded)
    for name in ("show_settings", "show_inspector"):
        loaded.docks.toggle(name)
    kinds = (QAbstractButton, QAbstractSpinBox, QComboBox, QPlainTextEdit, QProgressBar)
    controls = [w for kind in kinds for w in loaded.findChildren(kind)]
    assert len(controls) > 25
    inside = (QScrollBar, QLineEdit)
    nameless = [
        f"{type(w).__name__} in {type(w.parentWidget()).__name__}"
        for w in controls
        if not isinstance(w, inside)
        and not (w.accessibleName() or (isinstance(w, QAbstractButton) and w.text()) or w.toolTip())
        and not w.objectName().startswith("qt_")
        and type(w.parentWidget()).__name__ not in ("QTabBar", "QMenuBar", "QToolBar")
    ]
    assert nameless == []


def test_suggestions_are_sent_by_a_click(qtbot: QtBot, window: MainWindow) -> None:
    with qtbot.waitSignal(window.controller.loaded, timeout=PATIENCE_MS):
        window.open_demo()
    (first, *_) = [b for b in window.welcome.findChildren(QAbstractButton) if b.objectName() == "suggestion"]
    with qtbot.waitSignal(window.controller.reply_ended, timeout=PATIENCE_MS):
        qtbot.mouseClick(first, Qt.MouseButton.LeftButton)
    assert window.controller.messages[0].content == "What is the capital of France?"
    assert window.memory.settings.recent == (), "the demo is always there and needs no place among the recent ones"
    assert Path(window.controller.model.path if window.controller.model else "") == DEMO
    assert window.focusWidget() is window.composer.edit


def test_closing_during_a_reply_stops_it_first(qtbot: QtBot, loaded: MainWindow, script: Script) -> None:
    script.hold_after = 1
    loaded.send("hello")
    assert script.started.wait(5)
    with qtbot.waitSignal(loaded.closed, timeout=PATIENCE_MS):
        loaded.close()
    assert not loaded.engine.running
    assert not loaded.isVisible()


def test_a_window_whose_engine_does_not_answer_closes_all_the_same(
    qtbot: QtBot, loaded: MainWindow, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.main_window.CLOSE_PATIENCE_MS", 50)
    script.hold_after, script.deaf = 1, True
    loaded.send("hello")
    assert script.started.wait(5)
    with qtbot.waitSignal(loaded.closed, timeout=PATIENCE_MS):
        loaded.close()
    assert loaded.engine.running


def test_a_window_that_cannot_keep_something_closes_all_the_same(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError("a name that cannot be written")

    with monkeypatch.context() as patched, qtbot.waitSignal(loaded.closed, timeout=PATIENCE_MS):
        patched.setattr(loaded.memory, "save", fail)
        with pytest.raises(ValueError, match="cannot be written"):
            loaded.close()
    assert not loaded.engine.running


def test_the_event_loop_stays_alive_while_a_fast_engine_streams(
    qtbot: QtBot, loaded: MainWindow, script: Script
) -> None:
    """A thousand rounds as fast as they come: the heartbeat goes on, and records come in batches, not one by one."""
    script.words, script.pace_s = [f"word{i}" for i in range(2500)], 0.002
    beats: list[float] = []
    batches: list[int] = []
    loaded.controller.records.connect(lambda records: batches.append(len(records)))
    heart = QTimer(loaded, interval=10)
    heart.timeout.connect(lambda: beats.append(time.perf_counter()))
    heart.start()
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=60_000):
        loaded.send("go")
    heart.stop()
    rounds = loaded.transcript.replies[0].stats.rounds
    assert rounds > 800
    assert len(batches) < rounds / 3
    assert len(beats) > len(batches)
    gaps = [later - earlier for earlier, later in pairwise(beats)]
    assert max(gaps) < 1.0, "generous: other work may hold the machine, a blocked window would take the whole reply"


def test_what_was_being_written_waits_in_each_conversation_and_outlives_the_program(
    qtbot: QtBot, loaded: MainWindow, make_window: MakeWindow
) -> None:
    with qtbot.waitSignal(loaded.controller.reply_ended, timeout=PATIENCE_MS):
        loaded.send("first")
    first = loaded.chats.current
    assert first is not None
    loaded.composer.set_text("half of it")
    loaded.new_chat()
    assert loaded.composer.text == ""
    loaded.composer.set_text("something else")
    again = make_window()
    assert again.composer.text == "something else"
    again.desk.open(first)
    assert again.composer.text == "half of it"


def test_a_change_of_theme_moves_nothing(window: MainWindow) -> None:
    QApplication.processEvents()
    before = window.model_bar.height(), window.pages.mapTo(window, QPoint(0, 0))
    for mode in ("dark", "light"):
        window.set_theme_mode(mode)
        QApplication.processEvents()
    assert (window.model_bar.height(), window.pages.mapTo(window, QPoint(0, 0))) == before


def test_panels_have_their_share_of_a_large_window(qtbot: QtBot, loaded: MainWindow) -> None:
    widths = []
    for size in ((1280, 800), (2560, 1440)):
        loaded.resize(*size)
        loaded.docks.fit()
        QApplication.processEvents()
        widths.append([loaded.docks.docks[name].width() for name in ("show_inspector", "show_chats")])
    assert all(large > small for small, large in zip(*widths, strict=True))
    assert widths[1][0] + widths[1][1] < 2560 / 2, "the conversation stays what the window is about"
