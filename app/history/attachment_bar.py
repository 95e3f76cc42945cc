"""The files of the message that is being written: a small card each, with what it costs and a way to remove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QActionGroup, QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QScrollArea, QVBoxLayout, QWidget

from app.history.attaching import Attaching
from app.history.store import Attachment
from app.icons import ink_icons
from app.language import tr, trn
from app.theme import GRID, Theme
from app.widgets import label, named, push, tool

if TYPE_CHECKING:
    from engine import PictureSize

SIDE = 5 * GRID


class AttachmentBar(QScrollArea):
    """A row of cards; hidden while there are none."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.attaching = Attaching(self)
        self.setObjectName("attachmentBar")
        self.setAccessibleName(tr("Attached files"))
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
        lines.addWidget(self._cost(file))
        row.addLayout(lines)
        remove = tr("Remove {file}", file=file.name)
        row.addWidget(tool("close", remove, lambda: self.attaching.remove(file), role="muted"))
        return card

    def _cost(self, file: Attachment) -> QWidget:
        """What a file takes; for a picture that could be smaller, a button with a menu of its sizes."""
        sizes, chosen = self.attaching.sizes.get(file.data, ()), self.attaching.size_of(file)
        if chosen is None or len(sizes) == 1:
            tokens = chosen.tokens if chosen else self.attaching.tokens.get(file)
            on_disk = f"{max(1, len(file.data) // 1024):,} KiB"
            return label(trn("{n:,} token", "{n:,} tokens", tokens) if tokens else on_disk, "caption")
        button = push(_short(chosen, sizes[1]), kind="link", name=tr("Size of {file}", file=file.name))
        button.setToolTip("\n".join([tr("How large the model sees this picture:"), *map(size_line, sizes)]))
        button.setAccessibleDescription(size_line(chosen))
        menu = QMenu(button)
        group = QActionGroup(menu)
        for size in sizes:
            action = group.addAction(menu.addAction(size_line(size)))
            action.setCheckable(True)
            action.setChecked(size is chosen)
            action.setData(size.longest or 0)
        group.triggered.connect(lambda action: self._choose_soon(file, action.data()))
        button.setMenu(menu)
        return button

    def _choose_soon(self, file: Attachment, longest: int) -> None:
        """Once the menu, which goes with its card, has been left."""
        QTimer.singleShot(0, self, lambda: self.attaching.choose_size(file, longest))


def _short(chosen: PictureSize, smaller: PictureSize) -> str:
    if chosen.longest:
        return trn("{side:,} px: {n:,} token", "{side:,} px: {n:,} tokens", chosen.tokens, side=chosen.longest)
    return trn(
        "{n:,} token; {fewer:,} at {side:,} px",
        "{n:,} tokens; {fewer:,} at {side:,} px",
        chosen.tokens,
        fewer=smaller.tokens,
        side=smaller.longest,
    )


def size_line(size: PictureSize) -> str:
    """A size in the menu."""
    if size.longest:
        return trn(
            "Send at {side:,} px: {n:,} token", "Send at {side:,} px: {n:,} tokens", size.tokens, side=size.longest
        )
    return trn(
        "Send as it is, {width:,} × {height:,}: {n:,} token",
        "Send as it is, {width:,} × {height:,}: {n:,} tokens",
        size.tokens,
        width=size.width,
        height=size.height,
    )


def _thumbnail(file: Attachment) -> QLabel:
    shown, picture = QLabel(), QPixmap()
    picture.loadFromData(QByteArray(file.data))
    if not picture.isNull():
        picture = picture.scaled(
            QSize(SIDE, SIDE) * 2, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        picture.setDevicePixelRatio(2)
    shown.setPixmap(picture)
    shown.setAccessibleName(tr("Picture {file}", file=file.name))
    return shown
