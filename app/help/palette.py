"""The command palette: everything that can be done, by a few letters of its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.help.fuzzy import score
from app.language import tr
from app.theme import GRID, Theme, current_theme
from app.widgets import label, named, open_at

COMMAND = Qt.ItemDataRole.UserRole
MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the palette."""

    text: str
    group: str
    run: Callable[[], object]
    keys: str = ""
    enabled: bool = True


def matching(commands: Sequence[Command], query: str) -> list[Command]:
    """The commands that fit, the best first; as they come for an empty query. What cannot be done now comes last."""
    found = [(score(query, f"{c.text} {c.group}"), i, c) for i, c in enumerate(commands)]
    kept = [(s, i, c) for s, i, c in found if s is not None]
    if not query.split():
        return [c for _, _, c in sorted(kept, key=lambda e: (not e[2].enabled, e[1]))][:MOST_SHOWN]
    return [c for _, _, c in sorted(kept, key=lambda e: (not e[2].enabled, -e[0], e[1]))][:MOST_SHOWN]


class Palette(QDialog):
    """A field and a list; Enter does what is chosen, Esc leaves."""

    def __init__(self, commands: Sequence[Command], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("palette")
        self.setWindowTitle(tr("Commands"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        open_at(self, 76 * GRID, 56 * GRID)
        self._commands = commands
        self.field = QLineEdit(placeholderText=tr("Type what you want to do"))
        self.field.setAccessibleName(tr("Search commands"))
        self.list = named(QListWidget(), "paletteList")
        self.list.setAccessibleName(tr("Commands"))
        self._delegate = CommandDelegate(theme, self.list)
        self.list.setItemDelegate(self._delegate)
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the field keeps it; arrows go through
        self.none = label(tr("No command has these letters in this order."), "caption")
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.setSpacing(GRID)
        column.addWidget(self.field)
        column.addWidget(self.list, 1)
        column.addWidget(self.none)
        self.field.textChanged.connect(self._show)
        self.field.returnPressed.connect(self._run)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(self._run)
        self._show("")

    @Slot(str)
    def _show(self, query: str) -> None:
        self.list.clear()
        unusable = tr("not possible now")
        for command in matching(self._commands, query):
            item = QListWidgetItem(command.text)
            item.setData(COMMAND, command)
            facts = [command.text, command.group, *([command.keys] if command.keys else [])]
            if not command.enabled:
                facts.append(unusable)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, ", ".join(facts))
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.none.setVisible(self.list.count() == 0)

    @Slot()
    def _run(self) -> None:
        item = self.list.currentItem()
        command = item.data(COMMAND) if item is not None else None
        if isinstance(command, Command) and command.enabled:
            self.close()
            command.run()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the system from light to dark also while this is open."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._delegate.theme = current_theme()
            self.list.viewport().update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up and down in the field move through the list."""
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
            if (step := steps.get(Qt.Key(event.key()))) and self.list.count():
                row = self.list.currentRow() + step
                row = row % self.list.count() if abs(step) == 1 else min(max(row, 0), self.list.count() - 1)
                self.list.setCurrentRow(row)
                return True
        return super().eventFilter(watched, event)


class CommandDelegate(QStyledItemDelegate):
    """The command to the left, its group and keys to the right."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, _index: object) -> QSize:
        return QSize(30 * GRID, option.fontMetrics.height() + 2 * GRID)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: object) -> None:
        command: Command = index.data(COMMAND)  # type: ignore[attr-defined]
        theme, box = self.theme, QRectF(option.rect).adjusted(GRID / 2, 1, -GRID / 2, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(QColor(theme.accent))
            painter.setBrush(QColor(theme.accent_soft))
            painter.drawRoundedRect(box, GRID, GRID)
        inner = box.adjusted(GRID, 0, -GRID, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        aside = f"{command.group}   {command.keys}" if command.keys else command.group
        small = QFont(option.font)
        small.setPointSizeF(option.font.pointSizeF() * 0.9)
        painter.setFont(small)
        painter.setPen(QColor(theme.muted if command.enabled else theme.faint))
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignRight, aside)
        inner.setRight(inner.right() - painter.fontMetrics().horizontalAdvance(aside) - 2 * GRID)
        painter.setFont(option.font)
        painter.setPen(QColor(theme.text if command.enabled else theme.faint))
        line = painter.fontMetrics().elidedText(command.text, Qt.TextElideMode.ElideRight, int(inner.width()))
        painter.drawText(inner, middle, line)
        painter.restore()
