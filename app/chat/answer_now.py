"""“Answer now”: a button beside the label of the thinking under way, which stays in sight while that scrolls."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QRect, SignalInstance, Slot
from PySide6.QtWidgets import QPushButton, QScrollBar, QWidget

from app.chat.controller import ChatController
from app.chat.transcript_model import TranscriptModel
from app.language import mark, tr
from app.theme import GRID
from app.widgets import push

ASK = mark("Answer now")
ASKED = mark("Closing the thought…")
TIP = mark("End the thinking here and let the answer begin (Ctrl+Shift+N)")


class ThinkingView(Protocol):
    """A view of the transcript that knows where it shows the thinking under way."""

    model: TranscriptModel
    caught_up: SignalInstance
    """It shows what is new in the transcript."""

    def thinking_row(self) -> QRect | None:
        """The row of the label above the thinking of the reply that is being written, in the viewport; it may lie
        outside. None if there is none."""

    def viewport(self) -> QWidget: ...
    def verticalScrollBar(self) -> QScrollBar: ...


class AnswerNowButton(QObject):
    """One button over one view; hidden unless the model thinks."""

    def __init__(self, view: ThinkingView, chat: ChatController) -> None:
        area = view.viewport().parentWidget()
        super().__init__(area)
        self._view = view
        self._chat = chat
        self.button: QPushButton = push(tr(ASK), chat.answer_now, tip=tr(TIP))
        self.button.setParent(area)  # not the viewport, whose children move when it scrolls
        self.button.hide()
        chat.changed.connect(self.refresh)
        view.caught_up.connect(self.refresh)
        view.verticalScrollBar().valueChanged.connect(self.refresh)
        view.verticalScrollBar().rangeChanged.connect(self.refresh)
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the view's size."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self.refresh()
        return super().eventFilter(watched, event)

    @Slot()
    def refresh(self) -> None:
        """Show the button at the right end of the label's row, or at the top when that has scrolled away."""
        row = self._view.thinking_row() if self._chat.thinking else None
        if row is None:
            self.button.hide()
            return
        asked = self._chat.answer_wanted
        self.button.setText(tr(ASKED if asked else ASK))
        self.button.setAccessibleName(self.button.text())
        self.button.setEnabled(not asked)
        size, viewport = self.button.sizeHint(), self._view.viewport().geometry()
        y = row.center().y() - size.height() // 2
        y = max(GRID // 2, min(y, viewport.height() - size.height() - GRID // 2))
        left = min(row.right(), viewport.width() - GRID) - size.width()
        self.button.setGeometry(QRect(viewport.topLeft(), size).translated(left, y))
        self.button.show()
        self.button.raise_()
