"""The palette: what is found by which letters, and that Enter does it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.actions import ACTIONS
from app.help.fuzzy import score
from app.help.palette import COMMAND, Command, matching
from app.main_window import MainWindow
from app.settings import RecentModel


def names(query: str, *texts: str) -> list[str]:
    return [c.text for c in matching([Command(text, "Group", lambda: None) for text in texts], query)]


def test_letters_in_order_match_and_whole_words_come_first() -> None:
    assert names("opd", "Open the demo", "Quit") == ["Open the demo"]
    assert names("light", "Slightly", "Light", "Dark") == ["Light", "Slightly"]
    assert names("demo open", "Open the demo", "Open a file") == ["Open the demo"]
    assert names("", "b", "a") == ["b", "a"]
    assert score("zq", "Open the demo") is None


def test_what_cannot_be_done_now_comes_last() -> None:
    commands = [Command("Open one", "", lambda: None, enabled=False), Command("Open two", "", lambda: None)]
    assert [c.text for c in matching(commands, "open")] == ["Open two", "Open one"]


def test_every_action_is_there_and_enter_does_the_chosen_one(qtbot: QtBot, window: MainWindow) -> None:
    window.memory.change(recent=(RecentModel("/models/old"),))
    window.actions_by_name["palette"].trigger()
    palette = window.rooms.palette
    assert palette is not None
    shown = [palette.list.item(i).data(COMMAND).text for i in range(palette.list.count())]
    wanted = {window.actions_by_name[s.name].text().replace("&", "") for s in ACTIONS if s.name not in ("", "palette")}
    assert wanted <= set(shown)
    assert "Open old (missing)" in shown
    palette.field.setText("dark")
    qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(palette.field, Qt.Key.Key_Up)
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.memory.settings.theme == "dark"


def test_conversations_are_offered_and_opened(qtbot: QtBot, loaded: MainWindow) -> None:
    for text in ("about rivers", "about mountains"):
        with qtbot.waitSignal(loaded.controller.reply_ended, timeout=10_000):
            loaded.send(text)
        loaded.new_chat()
    loaded.actions_by_name["palette"].trigger()
    palette = loaded.rooms.palette
    assert palette is not None
    palette.field.setText("rivers")
    assert palette.list.item(0).data(COMMAND).group == "Conversation"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert loaded.chats.title == "about rivers"


def test_it_works_on_a_bare_window_and_shows_every_key(qtbot: QtBot, window: MainWindow) -> None:
    """Without a model, a conversation or a recent model."""
    window.actions_by_name["palette"].trigger()
    palette = window.rooms.palette
    assert palette is not None
    shown = [palette.list.item(i).data(COMMAND) for i in range(palette.list.count())]
    by_text = {command.text: command for command in shown}
    for spec in ACTIONS:
        if spec.keys and spec.name != "palette":
            assert by_text[window.actions_by_name[spec.name].text().replace("&", "")].keys, spec.name
    assert not by_text["Regenerate the last reply"].enabled
    palette.field.setText("library")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.rooms.shelf.dialog is not None
