"""Four hints for the first start: a card beside the part that it speaks of, to be stepped through or skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget
from shiboken6 import isValid

from app.language import tr
from app.theme import GRID
from app.widgets import label, push

WIDTH = 42 * GRID


@dataclass(frozen=True, slots=True)
class Hint:
    """What is said, and beside which part."""

    part: QWidget
    title: str
    text: str


class Tour(QFrame):
    """One hint after another; `ended` comes after the last and when the rest is skipped."""

    ended = Signal()

    def __init__(self, hints: Sequence[Hint], window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("tour")
        self.setAccessibleName(tr("Hint"))
        self.setFixedWidth(WIDTH)
        self._window = window
        self._before = window.focusWidget()
        self._hints = hints
        self.at = 0
        self._title, self._text, self._count = label("", "heading"), label("", wrap=True), label("", "caption")
        self.skip = push(tr("Skip"), self._end, kind="link", name=tr("Skip the hints"))
        self.next = push(tr("Next"), self._next, kind="primary")
        buttons = QHBoxLayout()
        for item in (self._count, self.skip, self.next):
            buttons.addWidget(item)
        buttons.insertStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 12)
        column.setSpacing(GRID)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(buttons)
        window.installEventFilter(self)
        self._show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay beside the part while the window changes its size."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._end()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.next.click()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Take Esc before the window's own Stop does."""
        override = event.type() == QEvent.Type.ShortcutOverride
        if override and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)

    def _show(self) -> None:
        hint, count = self._hints[self.at], len(self._hints)
        self._title.setText(hint.title)
        self._text.setText(hint.text)
        self._count.setText(tr("{number} of {count}", number=self.at + 1, count=count))
        last = self.at == count - 1
        self.next.setText(tr("Done") if last else tr("Next"))
        after = tr("Close the hints") if last else tr("Next hint")
        self.next.setAccessibleName(f"{hint.title}: {hint.text} {after}")
        self.skip.setVisible(not last)
        self.show()
        self.raise_()
        self._place()
        self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def _place(self) -> None:
        """Below the part if there is room, else above it, else inside its top; always within the window."""
        window, part = self._window, self._hints[self.at].part
        self.setFixedHeight(self.heightForWidth(WIDTH) + GRID)  # and its own outline
        area = QRect(part.mapTo(window, QPoint(0, 0)), part.size())
        y = area.bottom() + GRID
        if y + self.height() > window.height() - GRID:
            y = area.top() - self.height() - GRID
        if y < GRID:
            y = area.top() + 8 * GRID
        x = area.center().x() - self.width() // 2
        x = min(max(x, GRID), window.width() - self.width() - GRID)
        self.move(x, y)

    @Slot()
    def _next(self) -> None:
        if self.at == len(self._hints) - 1:
            self._end()
        else:
            self.at += 1
            self._show()

    @Slot()
    def _end(self) -> None:
        """Leave, and give the keys back to who had them: what is typed next must not press a button."""
        self._window.removeEventFilter(self)
        self.hide()
        if self._before is not None and isValid(self._before):
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        self.ended.emit()
        self.deleteLater()
