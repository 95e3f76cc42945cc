"""Parts that many windows share."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot

from app.style import Stylist
from app.widgets import label


def test_a_name_with_markup_is_shown_as_it_is(qapp: QApplication) -> None:
    marked = label("<font size=7>model</font>.gguf")
    assert marked.textFormat() is Qt.TextFormat.PlainText
    assert marked.sizeHint().width() > label("model.gguf").sizeHint().width()


def test_an_opened_list_shows_all_of_its_entries(qtbot: QtBot, stylist: Stylist) -> None:
    box = QComboBox()
    qtbot.addWidget(box)
    box.addItems(["MTP layer", "Lookup in the text", "MTP and lookup", "Nothing (plain)"])
    box.setCurrentIndex(3)
    box.show()
    qtbot.waitExposed(box)
    box.showPopup()
    view = box.view()
    rows = [view.visualRect(view.model().index(row, 0)) for row in range(box.count())]
    box.hidePopup()
    assert all(view.viewport().rect().contains(row) for row in rows)
