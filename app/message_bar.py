"""The message area: one sentence about what went wrong, to be copied or dismissed; it blocks nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAccessible, QAccessibleEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.icons import pixmap
from app.language import tr
from app.theme import GRID, Theme
from app.widgets import label, push, restyle, tool

Level = Literal["error", "warning", "info"]


class MessageBar(QFrame):
    """Hidden until `show_message`."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("messageBar")
        self._theme = theme
        self._level: Level = "info"
        self._mark = QLabel()
        self._text = label(wrap=True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.setAccessibleName(tr("Message"))
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        copy = push(tr("Copy"), self._copy, kind="link", name=tr("Copy the message"))
        self._remedy: Callable[[], object] | None = None
        self.remedy = push("", self._on_remedy, kind="link", name=tr("What can be done about it"))
        """What can be done about it, where something can."""
        dismiss = tool("close", tr("Dismiss the message (Esc)"), self.dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID, GRID, GRID, GRID)
        row.setSpacing(GRID)
        for widget in (self._mark, self._text, self.remedy, copy, dismiss):
            row.addWidget(widget, 1 if widget is self._text else 0)
        self.hide()

    @property
    def text(self) -> str:
        """The sentence that is shown; empty when none is."""
        return self._text.text() if not self.isHidden() else ""

    @property
    def level(self) -> Level:
        return self._level

    def show_message(
        self, sentence: str, level: Level = "error", remedy: tuple[str, Callable[[], object]] | None = None
    ) -> None:
        """Show a sentence in the place of the one before it. `remedy`: a button and what it does."""
        self._level = level
        self.remedy.setVisible(remedy is not None)
        self._remedy = remedy[1] if remedy else None
        if remedy:
            self.remedy.setText(remedy[0])
            self.remedy.setAccessibleName(remedy[0])
        self._text.setText(sentence)
        self.setAccessibleName(_spoken(level, sentence))
        self.setProperty("level", level)
        restyle(self)
        self._draw_mark()
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    @Slot(str)
    def add_error(self, sentence: str) -> None:
        """Show a sentence below an error that nobody has dismissed yet, or alone."""
        before = f"{self.text}\n" if self.text and self._level == "error" else ""
        self.show_message(before + sentence)

    @Slot()
    def dismiss(self) -> None:
        self.hide()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._draw_mark()

    def _draw_mark(self) -> None:
        ink = {"error": self._theme.error, "warning": self._theme.warning, "info": self._theme.accent}[self._level]
        self._mark.setPixmap(pixmap(self._level, ink, ratio=self.devicePixelRatioF()))

    @Slot()
    def _on_remedy(self) -> None:
        remedy = self._remedy
        self.dismiss()
        if remedy is not None:
            remedy()

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.text())


def _spoken(level: Level, sentence: str) -> str:
    """The sentence as screen readers say it."""
    if level == "error":
        return tr("Error: {sentence}", sentence=sentence)
    if level == "warning":
        return tr("Warning: {sentence}", sentence=sentence)
    return tr("Info: {sentence}", sentence=sentence)
