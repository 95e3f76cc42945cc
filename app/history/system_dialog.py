"""The system prompt of a conversation: what the model is told before anything is said."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.history.chats import Chats
from app.language import tr
from app.theme import GRID
from app.widgets import label


class SystemDialog(QDialog):
    """Shows and changes the open conversation's system prompt."""

    def __init__(self, chats: Chats, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("systemDialog")
        self.setWindowTitle(tr("System prompt"))
        self.resize(70 * GRID, 40 * GRID)
        self._chats = chats
        self.edit = QPlainTextEdit(chats.system)
        self.edit.setAccessibleName(tr("System prompt"))
        self.edit.setPlaceholderText(tr("You are a patient teacher. Answer in two sentences."))
        self.edit.setTabChangesFocus(True)
        lead = tr(
            "The model reads this before the conversation. It belongs to this conversation; a new one begins with it."
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        for widget in (label(lead, wrap=True), self.edit, buttons):
            column.addWidget(widget)

    @Slot()
    def accept(self) -> None:
        """Keep it; if that fails the message area says why, and the text stays here."""
        if self._chats.set_system(self.edit.toPlainText().strip()):
            super().accept()
