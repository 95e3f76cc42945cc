"""A transcript view on the screen, with everything laid out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript_model import TranscriptModel
from app.chat.transcript_view import TranscriptView
from app.theme import LIGHT, Theme

Show = Callable[..., TranscriptView]


@pytest.fixture
def show(qtbot: QtBot) -> Callable[..., TranscriptView]:
    def make(model: TranscriptModel, theme: Theme = LIGHT, size: tuple[int, int] = (800, 600)) -> TranscriptView:
        view = TranscriptView(model, theme)
        qtbot.addWidget(view)
        view.resize(*size)
        view.show()
        qtbot.waitExposed(view)
        settle(qtbot, view)
        return view

    return make


def settle(qtbot: QtBot, view: TranscriptView) -> None:
    qtbot.waitUntil(lambda: view.document.waiting == 0, timeout=20_000)
    QGuiApplication.processEvents()
