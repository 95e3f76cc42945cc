"""Small makers of widgets: the same few properties set the same way everywhere, each control with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QMainWindow,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolBar,
    QToolButton,
    QWidget,
)

from app.icons import put_icon
from app.theme import GRID

Type = Literal["hero", "title", "heading", "name", "lead", "caption", "value", "key", "body"]
Kind = Literal["primary", "plain", "link"]
Q = TypeVar("Q", bound=QObject)


class ScrollingPage(QScrollArea):
    """A page that scrolls up and down only, so it is never narrower than what is on it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def minimumSizeHint(self) -> QSize:
        inner = self.widget()
        width = 0 if inner is None else inner.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width()
        return super().minimumSizeHint().expandedTo(QSize(width, 0))


class ElidedLabel(QLabel):
    """A line of text that gives way to an ellipsis instead of pushing its neighbours."""

    _whole = ""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        self._whole = text
        self._elide()

    @property
    def whole(self) -> str:
        return self._whole

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._elide()

    def _elide(self) -> None:
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, max(self.width(), 8)))


def named(target: Q, name: str) -> Q:
    """The same object with a name by which the style sheet finds it."""
    target.setObjectName(name)
    return target


def label(text: str = "", kind: Type = "body", *, wrap: bool = False, tip: str = "") -> QLabel:
    """Text in one of the style sheet's type sizes."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)  # names of files and models are no markup
    made.setProperty("type", kind)
    made.setWordWrap(wrap)
    made.setToolTip(tip)
    return made


def push(
    text: str, slot: Callable[..., object] | None = None, *, kind: Kind = "plain", name: str = "", tip: str = ""
) -> QPushButton:
    """A button with text; `name` is for screen readers, where the text says too little on its own."""
    made = QPushButton(text)
    made.setProperty("kind", kind)
    made.setToolTip(tip)
    made.setAccessibleName(name or text)
    if slot is not None:
        made.clicked.connect(slot)
    return made


def tool(icon: str, name: str, slot: Callable[..., object], *, role: str = "text") -> QToolButton:
    """A button with an icon; `name` is its tooltip and what screen readers say."""
    made = QToolButton()
    put_icon(made, icon, role)
    made.setToolTip(name)
    made.setAccessibleName(name)
    made.clicked.connect(slot)
    return made


def small_font(font: QFont) -> QFont:
    """A font for captions that are painted, as the style sheet sets them in labels."""
    small = QFont(font)
    if font.pointSizeF() > 0:
        small.setPointSizeF(0.9 * font.pointSizeF())
    return small


def open_at(dialog: QWidget, width: int, height: int) -> None:
    """Give a window the size that it begins with: this, or what fits on a small screen."""
    free = dialog.screen().availableSize() - QSize(0, 5 * GRID)  # for the frame that the system puts around it
    dialog.resize(QSize(width, height).boundedTo(free))


def add_bar(window: QMainWindow, content: QWidget, title: str, name: str) -> None:
    """Put a bar that stays where it is below the menus, without margins of its own."""
    bar = named(QToolBar(title), name)
    bar.setMovable(False)
    bar.addWidget(content)
    window.addToolBar(bar)
    if (layout := bar.layout()) is not None:
        layout.setContentsMargins(0, 0, 0, 0)  # the style sheet's; Qt takes them by itself after a change of theme only


def restyle(widget: QWidget) -> None:
    """Have the style sheet look again at the widget's properties."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def first_control(pane: QWidget) -> QWidget:
    """The pane itself if it takes the focus, else the first control in it that does."""
    if pane.focusPolicy() & Qt.FocusPolicy.TabFocus:
        return pane
    inner: QWidget | None = pane.nextInFocusChain()
    while inner is not None and pane.isAncestorOf(inner):
        if inner.focusPolicy() & Qt.FocusPolicy.TabFocus and inner.isVisible() and inner.isEnabled():
            return inner
        inner = inner.nextInFocusChain()
    return pane
