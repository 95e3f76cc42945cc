"""The list of the library: a model of its lines, and how a line is painted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.language import tr
from app.library.entries import Entry, headline
from app.theme import GRID, Theme

Index = QModelIndex | QPersistentModelIndex
NO_INDEX = QModelIndex()
ENTRY = Qt.ItemDataRole.UserRole


class EntryModel(QAbstractListModel):
    """The lines that match a search."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Entry] = []

    def show(self, entries: Sequence[Entry], search: str) -> None:
        """Show the entries in which every word of `search` occurs."""
        words = search.lower().split()
        rows = [entry for entry in entries if all(word in entry.haystack for word in words)]
        if rows != self.rows:
            self.beginResetModel()
            self.rows = rows
            self.endResetModel()

    def row_of(self, path: str) -> int:
        """The row of this checkpoint, or -1."""
        return next((i for i, entry in enumerate(self.rows) if entry.report.path == path), -1)

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        entry = self.rows[index.row()]
        if role == ENTRY:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.report.name
        if role == Qt.ItemDataRole.ToolTipRole:
            return entry.report.path
        if role == Qt.ItemDataRole.AccessibleTextRole:
            name, more = entry.report.name, headline(entry)
            return f"{name}. {more}" if entry.openable else tr("{name}. Cannot be opened. {why}", name=name, why=more)
        return None


class EntryDelegate(QStyledItemDelegate):
    """A name above a caption; what cannot be opened is grey, its reason in the caption."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        height = option.fontMetrics.height()
        return QSize(30 * GRID, round(2.1 * height) + 2 * GRID)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry, theme = index.data(ENTRY), self.theme
        state, rect, font = option.state, option.rect, option.font
        box = QRectF(rect).adjusted(GRID / 2, 2, -GRID / 2, -2)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & QStyle.StateFlag.State_Selected:
            focused = bool(state & QStyle.StateFlag.State_HasFocus)
            painter.setPen(QColor(theme.accent if focused else theme.accent_soft))
            painter.setBrush(QColor(theme.accent_soft))
            painter.drawRoundedRect(box, GRID, GRID)
        inner = box.adjusted(GRID, GRID / 2, -GRID, -GRID / 2)
        upper, lower = QRectF(inner), QRectF(inner)
        upper.setHeight(inner.height() / 2)
        lower.setTop(upper.bottom())
        bold, small = QFont(font), QFont(font)
        bold.setWeight(QFont.Weight.DemiBold)
        small.setPointSizeF(font.pointSizeF() * 0.9)
        middle = Qt.AlignmentFlag.AlignVCenter
        for area, face, text, colour in (
            (upper, bold, entry.report.name, theme.text if entry.openable else theme.muted),
            (lower, small, headline(entry), theme.muted),
        ):
            painter.setFont(face)
            painter.setPen(QColor(colour))
            line = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(area.width()))
            painter.drawText(area, middle, line)
        painter.restore()
