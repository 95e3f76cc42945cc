"""A row of parts that becomes several rows where it is too narrow for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import GRID

Spread = Literal["start", "centre", "apart", "columns"]
"""Where the room that is left in a row goes: behind the parts, around them, between them; or shared among columns that
are as many in every row."""

Row = list[tuple[QWidget, int]]
"""Parts that stand side by side, each with its width."""


class FlowRow(QWidget):
    """Parts in the widths they like; one that is wider than the row gets the row's width.

    No layout of Qt's: one that is written in Python holds on to items that Qt may have deleted.
    """

    def __init__(self, parts: Sequence[QWidget], spread: Spread = "start", gap: int = GRID) -> None:
        super().__init__()
        self._parts = list(parts)
        self._spread = spread
        self._gap = gap
        self._wanted: tuple[QSize, QSize] | None = None
        for part in parts:
            part.setParent(self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(width, move=False)

    def sizeHint(self) -> QSize:
        """All parts in one row."""
        sizes = [part.sizeHint() for part in self._shown()]
        width = sum(size.width() for size in sizes) + self._gap * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0)).grownBy(self.contentsMargins())

    def minimumSizeHint(self) -> QSize:
        """The widest part, and the height at the present width."""
        widest = max((_least(part) for part in self._shown()), default=0)
        least = QSize(widest, 0).grownBy(self.contentsMargins())
        return QSize(least.width(), self.heightForWidth(max(self.width(), least.width())))

    def event(self, event: QEvent) -> bool:
        """A part wants another size, or has been shown or hidden."""
        if event.type() == QEvent.Type.LayoutRequest:
            wanted = self.sizeHint(), self.minimumSizeHint()
            if wanted != self._wanted:  # numbers that change need not lay out the whole panel anew
                self._wanted = wanted
                self.updateGeometry()
            self._place(self.width(), move=True)
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width(), move=True)
        if event.oldSize().width() != event.size().width():
            self.updateGeometry()

    def showEvent(self, event: QShowEvent) -> None:
        """What changed while nobody saw it was not told."""
        super().showEvent(event)
        self.updateGeometry()
        self._place(self.width(), move=True)

    # Inside

    def _shown(self) -> list[QWidget]:
        return [part for part in self._parts if not part.isHidden()]

    def _place(self, width: int, *, move: bool) -> int:
        """Put the parts in their places; the height that this takes."""
        inside = QRect(0, 0, width, 0).marginsRemoved(self.contentsMargins())
        y = inside.top()
        for row in self._rows(inside.width()):
            height = max(_height(part, wide) for part, wide in row)
            if move:
                self._fill(row, inside, y, height)
            y += height + self._gap
        used = y - inside.top() - (self._gap if y > inside.top() else 0)
        return used - inside.height()

    def _rows(self, width: int) -> list[Row]:
        parts = [(part, min(part.sizeHint().width(), width)) for part in self._shown()]
        if self._spread == "columns":
            return self._columns(parts, width)
        rows: list[Row] = []
        free = -1
        for part, wide in parts:
            if wide + self._gap > free:
                rows.append([])
                free = width + self._gap
            rows[-1].append((part, wide))
            free -= wide + self._gap
        return rows

    def _columns(self, parts: Row, width: int) -> list[Row]:
        """The fewest rows of equally many parts, one below the other in columns."""
        for lines in range(1, len(parts) + 1):
            each = -(-len(parts) // lines)
            widths = [max(wide for _, wide in parts[column::each]) for column in range(each)]
            spare = width - sum(widths) - self._gap * (each - 1)
            if spare >= 0 or each == 1:
                shared = [wide + max(0, spare) // each for wide in widths]
                placed = [(part, shared[number % each]) for number, (part, _) in enumerate(parts)]
                return [placed[start : start + each] for start in range(0, len(placed), each)]
        return []

    def _fill(self, row: Row, inside: QRect, y: int, height: int) -> None:
        spare = inside.width() - sum(width for _, width in row) - self._gap * (len(row) - 1)
        x = inside.left() + (spare // 2 if self._spread == "centre" else 0)
        between = self._gap + (spare // (len(row) - 1) if self._spread == "apart" and len(row) > 1 else 0)
        for part, width in row:
            tall = _height(part, width)
            part.setGeometry(QRect(x, y + (height - tall) // 2, width, tall))
            x += width + between


def _least(part: QWidget) -> int:
    return max(part.minimumSizeHint().width(), part.minimumWidth())


def _height(part: QWidget, width: int) -> int:
    return part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()
