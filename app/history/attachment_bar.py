"""The files of the message that is being written: a small card each, with what it costs and a way to remove it."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.history.attaching import Attaching
from app.history.store import Attachment
from app.icons import ink_icons
from app.theme import GRID, Theme
from app.widgets import label, named, tool

SIDE = 5 * GRID


class AttachmentBar(QScrollArea):
    """A row of cards; hidden while there are none."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.attaching = Attaching(self)
        self.setObjectName("attachmentBar")
        self.setAccessibleName("Attached files")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedHeight(SIDE + 3 * GRID)
        self.attaching.changed.connect(self._rebuild)
        self._rebuild()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme

    @Slot()
    def _rebuild(self) -> None:
        strip = named(QWidget(), "attachmentStrip")
        row = QHBoxLayout(strip)
        row.setContentsMargins(0, 0, 0, GRID)
        row.setSpacing(GRID)
        for file in self.attaching.files:
            row.addWidget(self._card(file))
        row.addStretch(1)
        self.setWidget(strip)
        self.setVisible(bool(self.attaching.files))
        ink_icons(strip, self._theme)

    def _card(self, file: Attachment) -> QFrame:
        card = named(QFrame(), "attachmentCard")
        row = QHBoxLayout(card)
        row.setContentsMargins(GRID, GRID // 2, GRID // 2, GRID // 2)
        row.setSpacing(GRID)
        if file.kind == "picture":
            row.addWidget(_thumbnail(file))
        lines = QVBoxLayout()
        lines.setSpacing(0)
        name = label(self.fontMetrics().elidedText(file.name, Qt.TextElideMode.ElideMiddle, 20 * GRID), tip=file.name)
        lines.addWidget(name)
        lines.addWidget(label(self._cost(file), "caption"))
        row.addLayout(lines)
        row.addWidget(tool("close", f"Remove {file.name}", lambda: self.attaching.remove(file), role="muted"))
        return card

    def _cost(self, file: Attachment) -> str:
        tokens = self.attaching.tokens.get(file)
        return f"{tokens:,} tokens" if tokens is not None else f"{max(1, len(file.data) // 1024):,} KiB"


def _thumbnail(file: Attachment) -> QLabel:
    shown, picture = QLabel(), QPixmap()
    picture.loadFromData(QByteArray(file.data))
    if not picture.isNull():
        picture = picture.scaled(
            QSize(SIDE, SIDE) * 2, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        picture.setDevicePixelRatio(2)
    shown.setPixmap(picture)
    shown.setAccessibleName(f"Picture {file.name}")
    return shown
