"""The transcript as a person uses it: hovering, selecting, moving from token to token."""

from __future__ import annotations

from weakref import WeakSet

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAction,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
)
from PySide6.QtWidgets import QDialog, QMenu, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.cells import Cell, Reply
from app.chat.token_card import TokenCard, describe
from app.chat.token_cursor import Direction, first_cell, last_cell, move
from app.chat.transcript_canvas import TranscriptCanvas
from app.chat.transcript_model import TranscriptModel
from app.language import tr, trn
from app.theme import Theme

_HOVER_DELAY_MS = 150
_ARROWS = {
    Qt.Key.Key_Left: Direction.BACK,
    Qt.Key.Key_Right: Direction.ON,
    Qt.Key.Key_Up: Direction.UP,
    Qt.Key.Key_Down: Direction.DOWN,
}


class TranscriptView(TranscriptCanvas):
    """The canvas with mouse and keyboard: a card for the token under the pointer or the cursor, and copyable text."""

    token_hovered = Signal(object)
    """The `Cell` under the pointer or the keyboard's cursor; None when there is none."""
    token_chosen = Signal(object)
    """The `Cell` that a person clicked or went to; None where there is no token."""

    def __init__(self, model: TranscriptModel, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(model, theme, parent)
        self.card = TokenCard(self, self._theme)
        self._hovered: tuple[int, int] | None = None
        self._hover_delay = QTimer(self, singleShot=True, interval=_HOVER_DELAY_MS)
        self._hover_delay.timeout.connect(self._show_hovered)
        self._dragging = False
        self._writing = False
        self._seen: WeakSet[Reply] = WeakSet()
        """Replies whose thinking was folded once; what the person unfolds stays so."""
        self.viewport().setMouseTracking(True)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Transcript"))
        self._update_description()
        self.scrolled.connect(self._move_card)
        model.appended.connect(self._on_news)
        model.reset.connect(self._forget_cells)
        self._copy = self._action(tr("Copy"), QKeySequence.StandardKey.Copy, self.copy)
        self._copy_marked = self._action(tr("Copy all with acceptance marks"), None, self.copy_marked)
        self._select_all = self._action(tr("Select all"), QKeySequence.StandardKey.SelectAll, self.select_all)
        self._as_text = self._action(tr("View as text…"), None, self.view_as_text)

    def _action(self, text: str, key: QKeySequence.StandardKey | None, slot: object) -> QAction:
        action = QAction(text, self)
        if key is not None:
            action.setShortcut(QKeySequence(key))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(slot)
        self.addAction(action)
        return action

    def apply_theme(self, theme: Theme) -> None:
        super().apply_theme(theme)
        self.card.apply_theme(theme)

    # Text

    def selected_text(self) -> str:
        """The selected text, without refused drafts."""
        return self.selection.text(self.model.entries)

    def copy(self) -> None:
        """Copy the selected text; without a selection, nothing."""
        if text := self.selected_text():
            QGuiApplication.clipboard().setText(text)

    def copy_marked(self) -> None:
        """Copy the whole transcript with a mark after each drafted or corrected token."""
        QGuiApplication.clipboard().setText(self.text_with_marks())

    def select_all(self) -> None:
        """Select the whole transcript."""
        self.selection.select_all(self.model.entries)
        self.viewport().update()

    def text_with_marks(self) -> str:
        """The transcript as text: [m] MTP draft, [n] n-gram draft, [c] correction, [b] bonus, [x] refused or unused."""
        return self.model.plain_text(marks=True)

    def view_as_text(self) -> QDialog:
        """Open the transcript as ordinary text, for screen readers and for searching."""
        dialog = QDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Transcript as text"))
        text = QPlainTextEdit(self.text_with_marks())
        text.setReadOnly(True)
        text.setAccessibleName(tr("Transcript as text"))
        marks = tr("Marks: m MTP draft, n n-gram draft, c correction, b bonus, x refused or unused.")
        text.setAccessibleDescription(marks)
        QVBoxLayout(dialog).addWidget(text)
        dialog.resize(720, 540)
        dialog.show()
        return dialog

    # The card

    def cell(self, at: tuple[int, int] | None) -> Cell | None:
        """Everything about a cell of a reply; None for other text."""
        if at is None or at[0] >= len(self.model.entries):
            return None
        entry = self.model.entries[at[0]]
        return entry.cell(at[1]) if isinstance(entry, Reply) and at[1] < len(entry) else None

    def _show_card(self, at: tuple[int, int]) -> None:
        cell = self.cell(at)
        if cell is None:
            self._hide_card()
            return
        self.card.show_cell(cell)
        self.card.place_beside(self.rect_of(*at), self.viewport().rect())
        self.card.show()
        self.card.raise_()

    def _hide_card(self) -> None:
        if not self.card.pinned:
            self.card.hide()

    def _show_hovered(self) -> None:
        if self._hovered is not None and not self.card.pinned:
            self._show_card(self._hovered)

    def pin(self) -> None:
        """Keep the card of the token at the cursor until Escape, or let it go."""
        self.card.pinned = not self.card.pinned and self.cursor_cell is not None
        if self.cursor_cell is not None:
            self._show_card(self.cursor_cell)

    def unpin(self) -> None:
        """Close the card."""
        self.card.pinned = False
        self.card.hide()

    # Mouse

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover, or stretch the selection."""
        if self._dragging:
            self.selection.head = self.place_at(event.position())
            self._scroll_while_dragging(event.position().toPoint())
            self.viewport().update()
            return
        over_label = self.thinking_at(event.position()) is not None
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over_label else Qt.CursorShape.IBeamCursor)
        self._hover(self.cell_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Put the cursor on the token, and begin a selection."""
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        if (entry := self.thinking_at(event.position())) is not None:
            self.toggle_thinking(entry)
            return
        place = self.place_at(event.position())
        if not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.selection.anchor = place
        self.selection.head = place
        self._dragging = True
        self.card.pinned = False
        self._set_cursor(self.cell_at(event.position()))
        self.viewport().update()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """End of a selection."""
        self._dragging = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select the word."""
        at = self.cell_at(event.position())
        if at is not None:
            place = self.place_at(event.position())
            word = place if place[:2] == at else place._replace(cell=at[1], offset=0)
            self.selection.select_word(self.model.entries, word)
            self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is hovered any more."""
        self._hover(None)
        super().leaveEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """The viewport's Leave event is the one that counts."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        return super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copying, and the text form."""
        self._copy.setEnabled(not self.selection.empty)
        menu = QMenu(self)
        menu.addActions([self._copy, self._copy_marked, self._select_all, self._as_text])
        menu.exec(event.globalPos())

    def _move_card(self, dy: int) -> None:
        """A pinned card goes with its token, another one is closed."""
        if self.card.pinned:
            self.card.move(self.card.pos() + QPoint(0, dy))
        else:
            self.card.hide()

    def _hover(self, at: tuple[int, int] | None) -> None:
        if at is not None and self.cell(at) is None:
            at = None
        if at == self._hovered:
            return
        self._hovered = at
        self.token_hovered.emit(self.cell(at))
        if at is None:
            self._hover_delay.stop()
            self._hide_card()
        elif self.card.isVisible():
            self._show_hovered()
        else:
            self._hover_delay.start()

    def _scroll_while_dragging(self, point: QPoint) -> None:
        bar = self.verticalScrollBar()
        if point.y() < 0:
            bar.setValue(bar.value() - bar.singleStep())
        elif point.y() > self.viewport().height():
            bar.setValue(bar.value() + bar.singleStep())

    # Keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move from token to token, Enter pins the card, Escape closes it."""
        key = Qt.Key(event.key())
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if key in _ARROWS:
            self._move(_ARROWS[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.cursor_cell is not None:
            self.pin()
        elif key == Qt.Key.Key_Escape and not self.card.isHidden():
            self.unpin()
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End) and control:
            ends = first_cell if key == Qt.Key.Key_Home else last_cell
            self._go(ends(self.document))
        elif key == Qt.Key.Key_Home:
            self.verticalScrollBar().setValue(0)
        elif key == Qt.Key.Key_End:
            self.scroll_to_end()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def _move(self, direction: Direction) -> None:
        if self.cursor_cell is None:
            self._go(last_cell(self.document))
            return
        self.document.lay_out([self.document.block_of(*self.cursor_cell)])
        self._go(move(self.document, self.cursor_cell, direction))

    def _go(self, at: tuple[int, int] | None) -> None:
        if at is None:
            return
        self._set_cursor(at)
        self.reveal(*at)
        if self.card.pinned or not self.card.isHidden():
            self._show_card(at)

    def _set_cursor(self, at: tuple[int, int] | None) -> None:
        self.cursor_cell = at if self.cell(at) is not None else None
        cell = self.cell(self.cursor_cell)
        self.token_hovered.emit(cell)
        self.token_chosen.emit(cell)
        self.setAccessibleDescription(describe(cell) if cell is not None else "")
        if cell is None:
            self._update_description()
        self.viewport().update()

    def _on_news(self) -> None:
        """A reply's end is announced; every token of it would only be noise to who listens."""
        writing = self.model.active_reply is not None
        if self._writing and not writing and (reply := self.model.last_reply) is not None:
            self._fold_finished()
            said = trn("Reply finished: {n} token.", "Reply finished: {n} tokens.", reply.tokens)
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, said))
        self._writing = writing
        if not writing and self.cursor_cell is None:
            self._update_description()

    def _forget_cells(self) -> None:
        self._hovered = None
        self.unpin()
        self._fold_finished()
        self._update_description()

    def toggle_thinking(self, entry: int | None = None) -> None:
        """Fold or unfold the thinking of a reply; without one, of the reply at the cursor, or else of the last."""
        if entry is None and self.cursor_cell is not None:
            entry = self.cursor_cell[0]
        if entry is None:
            entry = next((i for i in reversed(range(len(self.model.entries))) if self._thinks(i)), None)
        if entry is not None and self._thinks(entry):
            self.unpin()
            self.fold_thinking(entry, self.model.entries[entry] not in self.document.folded)

    def _thinks(self, entry: int) -> bool:
        reply = self.model.entries[entry]
        return isinstance(reply, Reply) and len(reply) > 0 and reply.thinking(0)

    def _fold_finished(self) -> None:
        """The thinking of every finished reply that went on to answer is folded when it comes into view or ends."""
        for index, reply in enumerate(self.model.entries):
            if isinstance(reply, Reply) and not reply.active and self._thinks(index) and reply not in self._seen:
                self._seen.add(reply)
                if reply.phase_end(0) < len(reply):
                    self.fold_thinking(index, True)

    def _update_description(self) -> None:
        reply = self.model.last_reply
        if reply is not None:
            last = trn("The last reply has {n} token.", "The last reply has {n} tokens.", reply.tokens)
        else:
            last = tr("It is empty.")
        keys = tr("Arrow keys go from token to token, Enter pins what is known about one.")
        self.setAccessibleDescription(f"{last} {keys}")
