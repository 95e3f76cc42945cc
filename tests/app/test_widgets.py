"""Parts that many windows share."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.widgets import label


def test_a_name_with_markup_is_shown_as_it_is(qapp: QApplication) -> None:
    marked = label("<font size=7>model</font>.gguf")
    assert marked.textFormat() is Qt.TextFormat.PlainText
    assert marked.sizeHint().width() > label("model.gguf").sizeHint().width()
