"""Settings that cannot be written are told of once, and hold while the window is there."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import FILE_NAME, SettingsFile


def test_settings_that_cannot_be_written_are_told_of_once(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    """Something stands where the new file has to go."""
    window.memory.save()
    in_the_way = (tmp_path / FILE_NAME).with_suffix(".new")
    in_the_way.mkdir()
    window.memory.change(font_size=18.0)
    window.memory.save()
    assert window.message_bar.text.startswith(f"The settings cannot be kept in {tmp_path / FILE_NAME} (Is a directory)")
    assert window.memory.settings.font_size == 18
    window.message_bar.dismiss()
    window.memory.save()
    assert window.message_bar.text == ""
    in_the_way.rmdir()
    window.message_bar.show_message("The history is elsewhere.")
    window.memory.save()
    assert SettingsFile(tmp_path).load().font_size == 18
    in_the_way.mkdir()
    window.memory.save()
    before, news = window.message_bar.text.split("\n")
    assert before == "The history is elsewhere.", "an error that nobody has dismissed stays"
    assert news.startswith("The settings cannot be kept"), "it worked in between, so it is told again"
