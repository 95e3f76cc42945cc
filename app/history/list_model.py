"""The list of conversations as rows: headings for days, and below each what was said then; or what a search found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Slot

from app.history.chats import Chats
from app.language import mark, tr

Index = QModelIndex | QPersistentModelIndex
SEARCH_DELAY_MS = 120
_MONTHS = (
    mark("January"),
    mark("February"),
    mark("March"),
    mark("April"),
    mark("May"),
    mark("June"),
    mark("July"),
    mark("August"),
    mark("September"),
    mark("October"),
    mark("November"),
    mark("December"),
)
"""Not those of the system's locale, whose language may be another one."""


class Role(IntEnum):
    """What a row tells besides its text."""

    CONVERSATION = Qt.ItemDataRole.UserRole + 1
    SNIPPET = Qt.ItemDataRole.UserRole + 2
    PINNED = Qt.ItemDataRole.UserRole + 3


@dataclass(frozen=True, slots=True)
class Row:
    """A heading (conversation 0), or a conversation."""

    text: str
    conversation: int = 0
    snippet: str = ""
    pinned: bool = False


class ConversationList(QAbstractListModel):
    """Rows of `Chats`, grouped by day; while `search` is not empty, those that it finds."""

    def __init__(self, chats: Chats, today: Callable[[], date] = date.today, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chats = chats
        self._today = today
        self._rows: list[Row] = []
        self._search = ""
        self._delay = QTimer(self, singleShot=True, interval=SEARCH_DELAY_MS)
        self._delay.timeout.connect(self.reload)
        chats.listed.connect(self.reload)
        self.reload()

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def search(self, text: str) -> None:
        """Show what is found for these words, a moment after the last key."""
        self._search = text.strip()
        self._delay.start()

    @Slot()
    def reload(self) -> None:
        """Ask the history again."""
        self._delay.stop()
        self.beginResetModel()
        self._rows = self._found() if self._search else self._by_day()
        self.endResetModel()

    def row_of(self, conversation: int | None) -> int:
        """The row of a conversation; -1 if it is not in the list."""
        return next(
            (i for i, row in enumerate(self._rows) if row.conversation and row.conversation == conversation), -1
        )

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.ToolTipRole):
            return row.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(filter(None, (row.text, tr("pinned") if row.pinned else "", row.snippet)))
        told = {Role.CONVERSATION: row.conversation, Role.SNIPPET: row.snippet, Role.PINNED: row.pinned}
        return told.get(role)  # type: ignore[call-overload]

    def flags(self, index: Index) -> Qt.ItemFlag:
        if index.isValid() and self._rows[index.row()].conversation:
            return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
        return Qt.ItemFlag.NoItemFlags

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Rename a conversation."""
        row = self._rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or not row.conversation:
            return False
        if str(value) != row.text:
            self._chats.rename(row.conversation, str(value))
        return True

    def _found(self) -> list[Row]:
        found = self._chats.search(self._search)
        heading = tr("{count} found", count=len(found)) if found else tr("Nothing found")
        rows = [Row(f.conversation.title, f.conversation.id, f.snippet, f.conversation.pinned) for f in found]
        return [Row(heading), *rows]

    def _by_day(self) -> list[Row]:
        rows: list[Row] = []
        heading = ""
        for conversation in self._chats.rows():
            day = datetime.fromtimestamp(conversation.updated).date()
            name = tr("Pinned") if conversation.pinned else day_name(day, self._today())
            if name != heading:
                heading = name
                rows.append(Row(heading))
            rows.append(Row(conversation.title, conversation.id, "", conversation.pinned))
        return rows


def day_name(day: date, today: date) -> str:
    """A day as a heading: the nearer, the finer."""
    if day >= today:
        return tr("Today")
    if day == today - timedelta(days=1):
        return tr("Yesterday")
    if day > today - timedelta(days=7):
        return tr("Last seven days")
    return tr("{month} {year}", month=tr(_MONTHS[day.month - 1]), year=day.year)
