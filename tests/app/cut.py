"""Finds words that a window cuts: text wider or taller than its label, and parts that reach out of what holds them."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QComboBox, QLabel, QPushButton, QScrollArea, QTabBar, QWidget

from app.widgets import ElidedLabel


def cut_words(root: QWidget) -> list[str]:
    """What a person cannot read to its end in `root`, which is shown; what a page scrolls to is not cut."""
    shown = (part for part in root.findChildren(QWidget) if part.isVisible() and _inside(part, root))
    return [problem for part in shown for problem in _problems(part, root)]


def _inside(part: QWidget, root: QWidget) -> bool:
    """Qt puts docks that are behind others far outside the window."""
    return QRect(part.mapTo(root, part.rect().topLeft()), part.size()).intersects(root.rect())


def _problems(part: QWidget, root: QWidget) -> Iterator[str]:
    if isinstance(part, QTabBar):
        lacking = [part.tabText(at) for at in range(part.count()) if not _tab_fits(part, at)]
        yield from (f"tab {text!r} is cut" for text in lacking)
    text = words(part)
    if not text:
        return
    if not _fits(part):
        yield f"{text!r} has {part.width()}×{part.height()}, wants {part.sizeHint().toTuple()}"
    holder = part.parentWidget()
    while holder is not None and not part.isWindow():
        seen = QRect(part.mapTo(holder, part.rect().topLeft()), part.size())
        if seen.left() < 0 or seen.right() > holder.width():
            yield f"{text!r} reaches out of {type(holder).__name__} {holder.objectName()}"
            return
        if holder is root:
            return
        holder = holder.parentWidget()


def words(part: QWidget) -> str:
    """What stands on a label, a button or a list that drops down."""
    if isinstance(part, ElidedLabel):  # ends in an ellipsis where it must, and says the whole when pointed at
        return ""
    if isinstance(part, QLabel | QPushButton | QCheckBox):
        return part.text()
    return part.currentText() if isinstance(part, QComboBox) else ""


def _fits(part: QWidget) -> bool:
    if isinstance(part, QComboBox):
        return part.fontMetrics().horizontalAdvance(part.currentText()) <= _room_for_text(part)
    if isinstance(part, QLabel) and part.wordWrap():
        return part.minimumSizeHint().width() <= part.width() and part.heightForWidth(part.width()) <= part.height()
    if isinstance(part, QAbstractButton) and not isinstance(part, QPushButton | QCheckBox):
        return True
    if isinstance(part, QPushButton) and part.layout() is not None:  # its labels are looked at themselves
        return True
    return part.sizeHint().width() <= part.width()


def _room_for_text(box: QComboBox) -> int:
    """Width that the style sheet leaves for the text: without border, padding, and the arrow."""
    return box.width() - 2 - 8 - 22


def _tab_fits(bar: QTabBar, at: int) -> bool:
    return bar.tabSizeHint(at).width() <= bar.tabRect(at).width() and bar.tabRect(at).right() <= bar.width()


def sideways(root: QWidget) -> list[str]:
    """Pages that scroll up and down only and are yet wider than what is seen of them."""
    return [
        f"{area.objectName()}: {area.widget().width()} in {area.viewport().width()}"
        for area in root.findChildren(QScrollArea)
        if area.isVisible() and area.widget().width() > area.viewport().width()
    ]
