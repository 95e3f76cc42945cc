"""The composer: keys, growth, and a reason wherever nothing can be sent."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.composer import HINT, MOST_LINES, Composer
from app.icons import SIZE, ink_icons
from app.theme import LIGHT


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    made = Composer()
    qtbot.addWidget(made)
    made.resize(500, 90)
    made.show()
    return made


def ready(composer: Composer, why_not: str = "", *, running: bool = False, stopping: bool = False) -> None:
    composer.show_state(why_not, running=running, stopping=stopping, queued=False)


def test_enter_sends_and_shift_enter_breaks_the_line(composer: Composer, qtbot: QtBot) -> None:
    sent: list[str] = []
    composer.submitted.connect(sent.append)
    qtbot.keyClicks(composer.edit, "one")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.edit, "two")
    assert sent == []
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    qtbot.keyClicks(composer.edit, "three")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    assert sent == ["one\ntwo", "three"]
    assert composer.text == ""


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_is_not_sent(composer: Composer, qtbot: QtBot, text: str) -> None:
    sent: list[str] = []
    composer.submitted.connect(sent.append)
    composer.set_text(text)
    composer.submit()
    assert sent == []
    assert not composer.button.isEnabled()


def test_what_cannot_be_sent_stays_written_and_the_reason_is_said(composer: Composer, qtbot: QtBot) -> None:
    sent: list[str] = []
    composer.submitted.connect(sent.append)
    ready(composer, "Choose a model first.")
    qtbot.keyClicks(composer.edit, "hello")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert (sent, composer.text, composer.hint.text()) == ([], "hello", "Choose a model first.")
    assert not composer.button.isEnabled()
    ready(composer)
    assert composer.hint.text() == HINT
    assert composer.button.isEnabled()


def test_it_grows_with_the_text_up_to_a_limit_and_shrinks_again(composer: Composer) -> None:
    one = composer.edit.height()
    composer.set_text("a\nb\nc")
    three = composer.edit.height()
    composer.set_text("\n".join("x" * 40))
    most = composer.edit.height()
    assert one < three < most
    assert most <= (MOST_LINES + 1) * composer.edit.fontMetrics().lineSpacing()
    composer.edit.clear()
    assert composer.edit.height() == one


def test_long_lines_that_wrap_count(composer: Composer) -> None:
    one = composer.edit.height()
    composer.set_text("word " * 60)
    assert composer.edit.height() > 2 * one


def test_the_button_stops_while_something_runs(composer: Composer, qtbot: QtBot) -> None:
    stops: list[bool] = []
    composer.stop_requested.connect(lambda: stops.append(True))
    ready(composer, "The model is replying.", running=True)
    assert composer.button.accessibleName() == "Stop (Esc)"
    qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    assert stops == [True]
    ready(composer, "Stopping…", running=True, stopping=True)
    assert not composer.button.isEnabled()


def test_a_message_given_back_does_not_overwrite_what_was_written_since(composer: Composer) -> None:
    composer.set_text("second")
    composer.give_back("first")
    assert composer.text == "first\nsecond"


def test_the_button_is_drawn_as_what_it_does(composer: Composer) -> None:
    def drawn() -> bytes:
        return bytes(composer.button.icon().pixmap(SIZE, SIZE).toImage().constBits())

    ink_icons(composer, LIGHT)
    send = drawn()
    ready(composer, "The model is replying; Esc stops it.", running=True)
    stop = drawn()
    assert stop != send
    ready(composer)
    assert drawn() == send


def test_a_click_anywhere_in_the_field_begins_to_write(composer: Composer, qtbot: QtBot) -> None:
    composer.edit.clearFocus()
    assert not composer.edit.hasFocus()
    qtbot.mouseClick(composer.hint, Qt.MouseButton.LeftButton)
    assert composer.edit.hasFocus()
