"""Where things lie on this computer, each with a way into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout

from app.language import tr
from app.theme import GRID
from app.widgets import label, push


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the program. `changeable`: the person may choose another."""

    name: str
    within: str
    """Its name within a sentence."""
    path: Path
    changeable: bool = False


class Places(QFrame):
    """A card with a line for each."""

    change_requested = Signal(str)  # the place's name

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("group")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(GRID)
        self._grid.setVerticalSpacing(GRID)
        self._grid.setColumnStretch(0, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(GRID)
        column.addWidget(label(tr("Where things are kept"), "heading"))
        column.addLayout(self._grid)

    def show_places(self, places: Sequence[Place]) -> None:
        """Show these."""
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for row, place in enumerate(places):
            said = label(f"{place.name}\n{breakable(place.path)}", wrap=True)
            said.setToolTip(str(place.path))
            self._grid.addWidget(said, row, 0)
            if place.changeable:
                change = push(tr("Change…"), name=tr("Change the folder of {place}", place=place.within))
                change.clicked.connect(lambda _=False, name=place.name: self.change_requested.emit(name))
                self._grid.addWidget(change, row, 1)
            show = push(tr("Open folder"), name=tr("Open the folder of {place}", place=place.within))
            show.clicked.connect(lambda _=False, path=place.path: open_folder(path))
            show.setEnabled(place.path.exists())
            if not place.path.exists():
                show.setToolTip(tr("It is made when there is something to keep in it"))
            self._grid.addWidget(show, row, 2)


def breakable(path: Path) -> str:
    """A path that may be broken over lines after its separators."""
    return str(path).replace("/", "/\u200b").replace("\\", "\\\u200b")


def open_folder(path: Path) -> None:
    """Show a folder in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
