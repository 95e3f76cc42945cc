"""Where a message is written: Enter sends, Shift+Enter breaks the line, the field grows with the text."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.icons import put_icon
from app.language import mark, tr
from app.theme import GRID
from app.widgets import label, named, push, restyle, tool

MOST_LINES = 9
HINT = mark("Enter sends · Shift+Enter breaks the line")
AGAIN = mark("Enter asks again; what was said before stays as a branch")


class PromptEdit(QPlainTextEdit):
    """A text field as tall as its text, up to a limit."""

    submitted = Signal()
    focus_changed = Signal(bool)
    files_pasted = Signal(object)  # list[Path]
    picture_pasted = Signal(bytes)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(False)  # files dropped here are for the window
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self.fit)

    @Slot()
    def fit(self) -> None:
        """Take the height of the text."""
        lines = max(1, round(self.document().size().height()))
        scrolls = lines > MOST_LINES
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(policy)
        self.setFixedHeight(min(lines, MOST_LINES) * self.fontMetrics().lineSpacing() + 2)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasImage() or source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Pasted files and pictures go with the message; text goes into it."""
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files_pasted.emit(paths)
        elif source.hasImage() and not source.hasText():
            data = QByteArray()
            source.imageData().save(QBuffer(data), "PNG")
            self.picture_pasted.emit(bytes(data.data()))
        else:
            super().insertFromMimeData(source)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
        elif enter:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)


class Composer(QFrame):
    """The rounded field with its one button: Send, or Stop while something runs.

    Writing is always possible; only sending waits, and the line below the text then says for what.
    """

    submitted = Signal(str)
    edited = Signal(int, str)
    """A message of the history was written anew."""
    stop_requested = Signal()
    take_back_requested = Signal()
    text_changed = Signal()
    attach_requested = Signal()

    def __init__(self, above: QWidget | None = None, parent: QWidget | None = None) -> None:
        """`above`: what stands over the text, as the files that go with it."""
        super().__init__(parent)
        self.setObjectName("composer")
        self._files = 0
        self._why_not = ""
        self._running = False
        self._editing = 0
        self._before = ""
        self.edit = PromptEdit()
        self.edit.setPlaceholderText(tr("Write a message"))
        self.edit.setAccessibleName(tr("Message to the model"))
        self.edit.submitted.connect(self.submit)
        self.edit.textChanged.connect(self._on_text)
        self.edit.focus_changed.connect(self._on_focus)
        self.hint = label(tr(HINT), "caption", wrap=True)
        name = tr("Take the waiting message back")
        self._take_back = push(tr("Take it back"), self.take_back_requested.emit, kind="link", name=name)
        self._take_back.hide()
        self.button = named(tool("send", tr("Send (Enter)"), self._on_button, role="on_accent"), "sendButton")
        self.button.setFixedSize(QSize(4 * GRID, 4 * GRID))
        foot = QHBoxLayout()
        foot.setSpacing(GRID)
        attach = tool("attach", tr("Attach files (Ctrl+Shift+A)"), self.attach_requested.emit, role="muted")
        foot.addWidget(attach)
        foot.addWidget(self.hint, 1)
        foot.addWidget(self._take_back)
        name = tr("Stop editing the message")
        self._end_edit = push(tr("Leave it as it was"), self.end_edit, kind="link", name=name)
        self._end_edit.hide()
        foot.addWidget(self._end_edit)
        foot.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 12, GRID, GRID)
        column.setSpacing(GRID // 2)
        if above is not None:
            column.addWidget(above)
        column.addWidget(self.edit)
        column.addLayout(foot)
        self.setFocusProxy(self.edit)
        self.setTabOrder(self.edit, self.button)
        self.setTabOrder(self.button, attach)
        self.show_state("", running=False, stopping=False, queued=False)
        self._on_focus(False)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Write, wherever in the rounded field a person clicks."""
        self.edit.setFocus(Qt.FocusReason.MouseFocusReason)
        super().mousePressEvent(event)

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Replace what is written and put the cursor at its end."""
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def give_back(self, text: str) -> None:
        """Put a message that was not sent in front of what has been written since."""
        self.set_text(f"{text}\n{self.text}" if self.text.strip() else text)

    @property
    def editing(self) -> int:
        """The message that is being written anew; 0 if none is."""
        return self._editing

    def begin_edit(self, message: int, text: str) -> None:
        """Write a message anew; what was being written waits until that is done."""
        if not self._editing:
            self._before = self.text
        self._editing = message
        self.set_text(text)
        self._end_edit.show()
        self._show_hint()
        self.edit.setFocus()

    @Slot()
    def end_edit(self) -> None:
        """Go back to what was being written before."""
        if self._editing:
            self._editing, before, self._before = 0, self._before, ""
            self._end_edit.hide()
            self.set_text(before)
            self._show_hint()

    def _show_hint(self) -> None:
        hint = AGAIN if self._editing else HINT
        self.hint.setText(self._why_not or tr(hint))

    def show_state(self, why_not: str, *, running: bool, stopping: bool, queued: bool) -> None:
        """Say whether a message can be sent, else why not; offer Stop while something runs."""
        self._why_not, self._running = why_not, running
        name = tr("Stop (Esc)") if running else tr("Send (Enter)")
        put_icon(self.button, "stop" if running else "send", "on_accent")
        self.button.setToolTip(name)
        self.button.setAccessibleName(name)
        self._show_hint()
        self._take_back.setVisible(queued)
        self._stopping = stopping
        self._show_button()

    def show_files(self, count: int) -> None:
        """How many files go with the message: with files, it needs no words."""
        self._files = count
        self._show_button()

    @Slot()
    def submit(self) -> None:
        """Send what is written, if there is something and it can be sent."""
        if (self.text.strip() or self._files) and not self._why_not:
            text, message = self.text.strip(), self._editing
            if message:
                self.end_edit()
                self.edited.emit(message, text)
                return
            self.edit.clear()
            self.submitted.emit(text)

    @Slot()
    def _on_button(self) -> None:
        if self._running:
            self.stop_requested.emit()
        else:
            self.submit()

    @Slot()
    def _on_text(self) -> None:
        self._show_button()
        self.text_changed.emit()

    def _show_button(self) -> None:
        can_send = bool(self.text.strip() or self._files) and not self._why_not
        self.button.setEnabled(not self._stopping if self._running else can_send)

    @Slot(bool)
    def _on_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        restyle(self)
