"""The conversations beside the chat: search, open, rename, pin, delete, all by mouse and by keyboard."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QColor, QFont, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.history.chats import Chats
from app.history.list_model import ConversationList, Role
from app.icons import pixmap
from app.language import tr
from app.theme import GRID, Theme
from app.widgets import label, named, tool

Index = QModelIndex | QPersistentModelIndex


class ConversationDelegate(QStyledItemDelegate):
    """Draws a heading, or a title with what was found below it."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.open: int | None = None

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        line = option.fontMetrics.height()
        if not index.data(Role.CONVERSATION):
            return QSize(0, line + 2 * GRID)
        return QSize(0, (2 * line if index.data(Role.SNIPPET) else line) + 2 * GRID)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, area = self.theme, option.rect.adjusted(GRID, 1, -GRID, -1)
        painter.save()
        conversation = index.data(Role.CONVERSATION)
        if not conversation:
            painter.setFont(_small(option.font, bold=True))
            painter.setPen(QColor(theme.muted))
            inside = area.adjusted(GRID, 0, -GRID, -GRID // 2)
            painter.drawText(inside, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, index.data())
            painter.restore()
            return
        self._paint_ground(painter, area, option, conversation == self.open)
        inside = area.adjusted(GRID, GRID // 2 + 2, -GRID, -GRID // 2 - 2)
        if index.data(Role.PINNED):
            painter.drawPixmap(QPoint(inside.right() - 14, inside.top() + 1), pixmap("pin", theme.muted, 14, 2.0))
            inside.setRight(inside.right() - 18)
        line = option.fontMetrics.height()
        self._line(painter, QRect(inside.topLeft(), QSize(inside.width(), line)), index.data(), theme.text, option.font)
        if snippet := index.data(Role.SNIPPET):
            below = QRect(inside.left(), inside.top() + line, inside.width(), line)
            self._line(painter, below, " ".join(snippet.split()), theme.muted, _small(option.font))
        painter.restore()

    def _paint_ground(self, painter: QPainter, area: QRect, option: QStyleOptionViewItem, is_open: bool) -> None:
        theme, state = self.theme, option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = chosen and bool(state & QStyle.StateFlag.State_HasFocus)
        painter.setPen(QColor(theme.accent) if focused else Qt.PenStyle.NoPen)
        ground = theme.accent_soft if is_open or chosen else theme.sunken if hovered else None
        painter.setBrush(QColor(ground) if ground else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(area, 6, 6)
        if is_open:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent))
            painter.drawRoundedRect(QRect(area.left(), area.top() + 6, 3, area.height() - 12), 1.5, 1.5)

    def _line(self, painter: QPainter, area: QRect, text: str, ink: str, font: QFont) -> None:
        painter.setFont(font)
        painter.setPen(QColor(ink))
        fitting = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, fitting)


class ConversationView(QListView):
    """The list: Enter opens, F2 renames, Delete deletes, P pins."""

    wanted = Signal(int)
    delete_wanted = Signal(int)
    pin_wanted = Signal(int)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        chosen = self.currentIndex().data(Role.CONVERSATION) if self.currentIndex().isValid() else 0
        editing = self.state() is QAbstractItemView.State.EditingState
        signals = {
            Qt.Key.Key_Return: self.wanted,
            Qt.Key.Key_Enter: self.wanted,
            Qt.Key.Key_Delete: self.delete_wanted,
            Qt.Key.Key_P: self.pin_wanted,
        }
        signal = signals.get(Qt.Key(event.key()))
        plain = event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier)
        if chosen and signal is not None and plain and not editing:
            signal.emit(chosen)
        else:
            super().keyPressEvent(event)


class Sidebar(QWidget):
    """Search field and list. What is asked for goes out as signals; the list follows the history by itself."""

    opened = Signal(int)
    new_wanted = Signal()
    delete_wanted = Signal(int)

    def __init__(self, chats: Chats, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._chats = chats
        self.model = ConversationList(chats, parent=self)
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Search conversations"))
        self.field.setAccessibleName(tr("Search conversations"))
        self.field.setClearButtonEnabled(True)
        for button in self.field.findChildren(QToolButton):
            button.setAccessibleName(tr("Clear the search"))
        self.field.textChanged.connect(self.model.search)
        self.field.installEventFilter(self)
        self.list = self._make_list(theme)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        row.addWidget(self.field, 1)
        row.addWidget(tool("new", tr("New chat (Ctrl+N)"), self.new_wanted.emit))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, GRID, 0, 0)
        column.setSpacing(GRID // 2)
        row.setContentsMargins(GRID, 0, GRID, 0)
        self.none = label(tr("Your conversations will be listed here."), "caption", wrap=True)
        self.none.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        column.addLayout(row)
        column.addWidget(self.none)
        column.addWidget(self.list, 1)
        self.setMinimumWidth(25 * GRID)
        self.setFocusProxy(self.field)
        self.model.modelReset.connect(self.show_open)
        chats.opened.connect(self.show_open)
        self.show_open()

    def _make_list(self, theme: Theme) -> ConversationView:
        view = named(ConversationView(), "conversations")
        view.setModel(self.model)
        self._delegate = ConversationDelegate(theme, view)
        view.setItemDelegate(self._delegate)
        view.setAccessibleName(tr("Conversations"))
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setMouseTracking(True)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._show_menu)
        view.clicked.connect(lambda index: self._open(index.data(Role.CONVERSATION)))
        view.wanted.connect(self._open)
        view.delete_wanted.connect(self.delete_wanted)
        view.pin_wanted.connect(self._pin)
        return view

    def apply_theme(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.list.viewport().update()

    def rename_open(self) -> None:
        """Let the person write another title for the open conversation."""
        self.field.clear()
        self.model.reload()
        self.show_open()
        if self.list.currentIndex().isValid():
            self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.list.edit(self.list.currentIndex())

    @Slot()
    def show_open(self) -> None:
        """Mark the conversation that is open."""
        self._delegate.open = self._chats.current
        self.none.setVisible(not self.model.rows)
        row = self.model.row_of(self._chats.current)
        self.list.setCurrentIndex(self.model.index(row) if row >= 0 else QModelIndex())
        self.list.viewport().update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down goes from the search field into the list, Escape clears it."""
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Down and len(self.model.rows) > 1:
                self.list.setFocus(Qt.FocusReason.OtherFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(self.model.index(1))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and len(self.model.rows) > 1:
                self.model.reload()
                self._open(self.model.rows[1].conversation if len(self.model.rows) > 1 else 0)
                return True
        return super().eventFilter(watched, event)

    @Slot(int)
    def _open(self, conversation: int) -> None:
        if conversation:
            self.opened.emit(conversation)

    @Slot(int)
    def _pin(self, conversation: int) -> None:
        pinned = any(row.pinned for row in self.model.rows if row.conversation == conversation)
        self._chats.pin(conversation, not pinned)

    @Slot(QPoint)
    def _show_menu(self, point: QPoint) -> None:
        index = self.list.indexAt(point)
        if menu := self.menu_for(index):
            menu.exec(self.list.viewport().mapToGlobal(point))

    def menu_for(self, index: QModelIndex) -> QMenu | None:
        """What can be done with a conversation."""
        conversation = index.data(Role.CONVERSATION) if index.isValid() else 0
        if not conversation:
            return None
        menu = QMenu(self)
        pin = tr("Un&pin") if index.data(Role.PINNED) else tr("&Pin")
        for text, key, slot in (
            (tr("&Open"), Qt.Key.Key_Enter, lambda: self._open(conversation)),
            (tr("&Rename"), Qt.Key.Key_F2, lambda: self.list.edit(index)),
            (pin, Qt.Key.Key_P, lambda: self._pin(conversation)),
            (tr("&Delete"), Qt.Key.Key_Delete, lambda: self.delete_wanted.emit(conversation)),
        ):
            named_key = QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
            action = QAction(f"{text}\t{named_key}", menu)
            action.triggered.connect(slot)
            menu.addAction(action)
        return menu


def _small(font: QFont, *, bold: bool = False) -> QFont:
    made = QFont(font)
    if font.pixelSize() > 0:
        made.setPixelSize(max(9, font.pixelSize() - 2))
    else:
        made.setPointSizeF(max(7.0, font.pointSizeF() - 1.5))
    made.setBold(bold)
    return made
