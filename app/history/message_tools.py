"""The small bar on a message under the pointer: edit, regenerate, continue, branches, copy, delete."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from app.chat.transcript_view import TranscriptView
from app.history.chats import Chats
from app.language import tr
from app.theme import GRID
from app.widgets import label, named

FOR_USER = ("message_edit", "message_copy", "message_delete")
FOR_REPLY = ("message_again", "go_on", "message_copy", "message_delete")
BRANCHES = ("branch_before", "branch_after")


class MessageTools(QFrame):
    """Follows the pointer over a transcript. Its buttons are the window's own actions, for the message `target`."""

    targeted = Signal(int)

    def __init__(self, view: TranscriptView, chats: Chats, actions: Mapping[str, QAction]) -> None:
        super().__init__(view.viewport())
        self.setObjectName("messageTools")
        self.setAccessibleName(tr("What can be done with the message"))
        self.target = 0
        self._view = view
        self._chats = chats
        self._count = label("", "caption")
        self._buttons: dict[str, QToolButton] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(0)
        for name in (*BRANCHES, "message_edit", "message_again", "go_on", "message_copy", "message_delete"):
            button = named(QToolButton(), name)
            button.setDefaultAction(actions[name])
            button.setAccessibleName(actions[name].text().replace("&", ""))
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # by keyboard they are in the menu, with their keys
            button.setFixedSize(3 * GRID + 4, 3 * GRID)
            self._buttons[name] = button
            row.addWidget(button)
            if name == "branch_before":
                row.addWidget(self._count)
        view.viewport().installEventFilter(self)
        view.verticalScrollBar().valueChanged.connect(self.hide)
        view.model.reset.connect(self._forget)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            if event.buttons() == Qt.MouseButton.NoButton:
                self.follow(event.position().y())
        elif event.type() == QEvent.Type.Leave and not self.underMouse():
            self.hide()
        return super().eventFilter(watched, event)

    def follow(self, y: float) -> None:
        """Stand on the message at this height of the viewport."""
        document, offset = self._view.document, self._view.verticalScrollBar().value()
        at = document.block_at(y + offset)
        entry = self._view.model.entries[document.blocks[at].entry] if at >= 0 else None
        if entry is None or entry.message not in self._chats.tree or entry is self._view.model.active_reply:
            self._forget()
            return
        if entry.message == self.target and self.isVisible():
            return
        self.target = entry.message
        self.targeted.emit(self.target)
        self._show_buttons()
        first = document.block_of(document.blocks[at].entry, 0)
        self._place(QRect(0, round(document.text_top(first) - offset), self._view.viewport().width(), 0))

    def _show_buttons(self) -> None:
        row = self._chats.tree[self.target]
        branches = self._chats.tree.branches(self.target)
        shown = FOR_USER if row.role == "user" else FOR_REPLY
        for name, button in self._buttons.items():
            button.setVisible(name in shown or (name in BRANCHES and len(branches) > 1))
        self._count.setVisible(len(branches) > 1)
        self._count.setText(f"{branches.index(self.target) + 1}/{len(branches)}")
        self._buttons["go_on"].setVisible(row.role == "assistant" and self.target == self._chats.tree.leaf)

    def _place(self, line: QRect) -> None:
        self.adjustSize()
        geometry = self._view.document.geometry
        right = round(geometry.left + geometry.column)
        x = min(line.width() - self.width() - GRID, right - self.width() + GRID)
        self.move(max(0, x), max(0, line.top() - self.height() - 2))
        self.show()
        self.raise_()

    def _forget(self) -> None:
        self.target = 0
        self.hide()

    def widget(self) -> QWidget:
        return self
