"""Presets: which one the settings are, saving, taking, deleting."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.chat.preset_bar import OWN, USUAL
from app.chat.sampling_panel import SamplingPanel
from app.settings import Preset, ReplyChoices, Settings, SettingsFile
from engine import DraftOptions, SamplingOptions

WILD = ReplyChoices(sampling=SamplingOptions(temperature=1.2, top_k=40), draft=DraftOptions("ngram", 6))


def test_settings_are_a_preset_or_ones_own(qtbot: QtBot) -> None:
    panel = SamplingPanel(ReplyChoices(), (Preset("Wild", WILD),))
    qtbot.addWidget(panel)
    assert panel.presets.list.currentText() == "Recommended"
    panel.tokens.setValue(7)
    assert panel.presets.list.currentText() == OWN
    at = panel.presets.list.findText("Wild")
    with qtbot.waitSignal(panel.changed) as blocker:
        panel.presets.list.activated.emit(at)
    assert blocker.args == [WILD]
    assert (panel.tokens.value(), panel.temperature.value()) == (6, 1.2)
    assert panel.presets.list.currentText() == "Wild"


def test_settings_are_saved_under_a_name_and_deleted(qtbot: QtBot) -> None:
    panel = SamplingPanel(WILD)
    qtbot.addWidget(panel)
    with qtbot.waitSignal(panel.presets.saved) as blocker:
        panel.presets.save(" Wild ")
    assert blocker.args == [(Preset("Wild", WILD),)]
    assert panel.presets.list.currentText() == "Wild"
    panel.presets.save(USUAL[0].name)
    with qtbot.waitSignal(panel.presets.saved) as blocker:
        panel.presets.delete()
    assert blocker.args == [()]
    assert panel.choices == WILD


def test_presets_survive_the_settings_file(tmp_path: Path) -> None:
    settings = Settings(presets=(Preset("Wild", WILD), Preset("Usual", ReplyChoices())))
    SettingsFile(tmp_path).save(settings)
    assert SettingsFile(tmp_path).load().presets == settings.presets
