"""The files of the message that is being written: a small card each, with what it costs and a way to remove it."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.history.attaching import Attaching
from app.history.store import Attachment
from app.theme import GRID
from app.widgets import label, named, tool

SIDE = 5 * GRID


class AttachmentBar(QScrollArea):
    """A row of cards; hidden while there are none."""

    rebuilt = Signal()
    """There are new cards, whose icons have no ink yet."""

    def __init__(self, attaching: Attaching, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("attachmentBar")
        self.setAccessibleName("Attached files")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedHeight(SIDE + 3 * GRID)
        self._attaching = attaching
        attaching.changed.connect(self._rebuild)
        self._rebuild()

    @Slot()
    def _rebuild(self) -> None:
        strip = named(QWidget(), "attachmentStrip")
        row = QHBoxLayout(strip)
        row.setContentsMargins(0, 0, 0, GRID)
        row.setSpacing(GRID)
        for file in self._attaching.files:
            row.addWidget(self._card(file))
        row.addStretch(1)
        self.setWidget(strip)
        self.setVisible(bool(self._attaching.files))
        self.rebuilt.emit()

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
        row.addWidget(tool("close", f"Remove {file.name}", lambda: self._attaching.remove(file), role="muted"))
        return card

    def _cost(self, file: Attachment) -> str:
        tokens = self._attaching.tokens.get(file)
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
