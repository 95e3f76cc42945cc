"""Stepping through rounds, by the scrubber and by the table: both stay on the same round."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.inspector.panel import InspectorPanel
from app.inspector.round_table import COLUMNS, RoundTableModel
from app.inspector.round_words import sentence
from app.inspector.rounds_model import RoundsModel
from app.theme import LIGHT
from engine import Round
from tests.app.chat import scripted_records as script
from tests.app.inspector.test_rounds_model import ALL, HALF, PLAIN

TOTAL_MS = [column.title for column in COLUMNS].index("Total ms")


@pytest.fixture
def panel(qtbot: QtBot) -> InspectorPanel:
    panel = InspectorPanel(LIGHT)
    qtbot.addWidget(panel)
    panel.resize(420, 760)
    panel.show()
    panel.add_records(script.long_reply(200))
    panel.refresh()
    return panel


def chosen(panel: InspectorPanel) -> list[Round | None]:
    heard: list[Round | None] = []
    panel.round_chosen.connect(heard.append)
    return heard


def test_stepping_goes_round_by_round_and_past_the_last_to_all(panel: InspectorPanel) -> None:
    heard, scrubber, log = chosen(panel), panel.scrubber, panel.model.log
    scrubber.step(-1)
    assert scrubber.number == len(log)
    scrubber.step(-1)
    scrubber.step(1)
    scrubber.step(1)
    assert heard == [log[-1], log[-2], log[-1], None]
    scrubber.slider.setValue(1)
    assert heard[-1] is log[0]
    scrubber.step(-1)
    assert scrubber.number == 1, "there is nothing before the first"


def test_a_round_chosen_elsewhere_is_shown_without_an_echo(panel: InspectorPanel) -> None:
    heard = chosen(panel)
    panel.choose(panel.model.log[6])
    assert panel.scrubber.number == 7
    assert panel.plots.time._mark.value() == 7
    assert panel.plots.time._mark.isVisible()
    panel.choose(ALL)
    assert panel.scrubber.number is None, "a round of another run"
    assert not heard


def test_the_chosen_round_stays_while_new_ones_come(panel: InspectorPanel) -> None:
    panel.scrubber.go(5)
    panel.add_records([ALL])
    panel.refresh()
    assert panel.scrubber.number == 5
    assert panel.scrubber.slider.maximum() == panel.model.rounds


def test_choosing_a_row_moves_the_scrubber_and_the_other_way_round(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.tabs.setCurrentWidget(panel.table)
    panel.scrubber.go(9)
    assert [i.row() for i in panel.table.selectionModel().selectedRows()] == [8]
    heard = chosen(panel)
    at = panel.table.visualRect(panel.table.rows.index(2, 0)).center()
    qtbot.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert panel.scrubber.number == 3
    assert heard == [panel.model.log[2]]


def test_rows_sort_by_value_and_keep_the_selected_round(panel: InspectorPanel) -> None:
    panel.tabs.setCurrentWidget(panel.table)
    panel.scrubber.go(4)
    panel.table.sortByColumn(TOTAL_MS, Qt.SortOrder.DescendingOrder)
    rows = panel.table.rows
    numbers = [rows.number_at(row) for row in range(rows.rowCount())]
    times = [panel.model.log[n - 1].draft_s + panel.model.log[n - 1].verify_s for n in numbers]
    assert times == sorted(times, reverse=True)
    (selected,) = panel.table.selectionModel().selectedRows()
    assert rows.number_at(selected.row()) == 4


def test_rows_are_copied_as_a_spreadsheet_takes_them(panel: InspectorPanel) -> None:
    panel.tabs.setCurrentWidget(panel.table)
    panel.table.copy_all()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t") == [column.title for column in COLUMNS]
    assert len(lines) == 1 + panel.model.rounds
    panel.table.selectRow(1)
    panel.table.copy()
    assert QGuiApplication.clipboard().text().splitlines() == [lines[0], lines[2]]


def test_the_table_model_keeps_qts_rules(qapp: object) -> None:
    rounds = RoundsModel()
    model = RoundTableModel(rounds)
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
    for batch in ([ALL, HALF], [PLAIN]):
        rounds.add_records(batch)
        model.refresh()
    model.sort(TOTAL_MS, Qt.SortOrder.DescendingOrder)
    rounds.clear()
    model.refresh()
    assert model.rowCount(QModelIndex()) == 0
    assert tester.model() is model


def test_a_round_in_words() -> None:
    assert sentence(HALF) == "3.0 ms · 2 proposed by MTP, 1 accepted · “b” refused, the model said “x” instead"
    assert "the model added “c”" in sentence(ALL)
    assert sentence(PLAIN) == "3.0 ms · nothing was drafted · the model said “x”"
    spaced = replace(PLAIN, committed=tuple(replace(token, text=" x y") for token in PLAIN.committed))
    assert sentence(spaced).endswith("the model said “\u00a0x y”")
