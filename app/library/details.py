"""The right half of the library: everything about one checkpoint, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.language import tr
from app.library.choice import size_text
from app.library.entries import Companion, Entry, facts_table
from app.theme import GRID
from app.widgets import label, named, push


class Details(QWidget):
    """Facts, problems, and the buttons. `open_requested` brings along the sidecar and the tower that were chosen."""

    open_requested = Signal(object, object, object)  # checkpoint, sidecar or None, vision tower or None
    forget_requested = Signal(object)  # Path

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entry: Entry | None = None
        self.remembered: Mapping[str, str] = {}
        """The vision tower that each checkpoint was last loaded with."""
        self._facts = QWidget()
        self.area = named(QScrollArea(), "settingsScroll")
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setAccessibleName(tr("Facts about the chosen file"))
        self.sidecar, self.tower = QComboBox(), QComboBox()
        self.sidecar.setAccessibleName(tr("Sidecar to open with it"))
        self.tower.setAccessibleName(tr("Vision tower to open with it"))
        self._with = _captioned(tr("Drafts from"), self.sidecar)
        self._sees = _captioned(tr("Sees with"), self.tower)
        self.open = push(tr("Open"), self._open, kind="primary", name=tr("Open the chosen model"))
        tip = tr("Show the file in the system's file manager")
        self.reveal = push(tr("Show in folder"), self._reveal, tip=tip)
        tip = tr("Take it off this list; the file itself stays where it is")
        self.forget = push(tr("Forget"), self._forget, name=tr("Forget the chosen file"), tip=tip)
        buttons = QHBoxLayout()
        buttons.setSpacing(GRID)
        buttons.addWidget(self.forget)
        buttons.addWidget(self.reveal)
        buttons.addStretch(1)
        buttons.addWidget(self.open)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * GRID)
        column.addWidget(self.area, 1)
        column.addWidget(self._with)
        column.addWidget(self._sees)
        column.addLayout(buttons)
        self.show_entry(None)

    def show_entry(self, entry: Entry | None) -> None:
        """Tell of this entry, or of none."""
        self.entry = entry
        self.area.setWidget(_page(entry))
        self._with.setVisible(bool(entry and entry.openable and entry.sidecars))
        self.sidecar.clear()
        if entry is not None and entry.sidecars:
            inside = entry.report.mtp not in ("", "none")
            self.sidecar.addItem(tr("the checkpoint's own MTP layer") if inside else tr("nothing: no sidecar"), None)
            for companion in entry.sidecars:
                self.sidecar.addItem(companion.path.name, companion.path)
            if not inside:
                self.sidecar.setCurrentIndex(1)
        self._offer_towers(entry)
        self.open.setEnabled(entry is not None and entry.openable)
        self.reveal.setEnabled(entry is not None)
        self.forget.setEnabled(entry is not None)

    def _offer_towers(self, entry: Entry | None) -> None:
        """The one it was last loaded with, or the first if it has none of its own."""
        self.tower.clear()
        self._sees.setVisible(bool(entry and entry.openable and entry.towers))
        if entry is None or not entry.towers:
            return
        inside = entry.report.vision == "inside"  # else it says why there is none
        self.tower.addItem(tr("the checkpoint's own vision tower") if inside else tr("nothing: no pictures"), None)
        for companion in entry.towers:
            self.tower.addItem(companion.path.name, companion.path)
        remembered = self.tower.findText(Path(self.remembered.get(entry.report.path, "")).name)
        self.tower.setCurrentIndex(remembered if remembered > 0 else 0 if inside else 1)

    @Slot()
    def _open(self) -> None:
        if self.entry is not None and self.entry.openable:
            chosen = (self.sidecar.currentData(), self.tower.currentData())
            self.open_requested.emit(self.entry.path, *(Path(path) if path else None for path in chosen))

    @Slot()
    def _reveal(self) -> None:
        if self.entry is not None:
            path = self.entry.path
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(path if path.is_dir() else path.parent)))

    @Slot()
    def _forget(self) -> None:
        if self.entry is not None:
            self.forget_requested.emit(self.entry.path)


def _captioned(caption: str, box: QComboBox) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 0, 0, 0)
    text = label(caption)
    text.setMinimumWidth(10 * GRID)  # one column, where there are two
    row.addWidget(text)
    row.addWidget(box, 1)
    return holder


def _page(entry: Entry | None) -> QWidget:
    """What the scroll area shows."""
    page = named(QWidget(), "settingsPanel")
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, GRID, 0)
    column.setSpacing(GRID)
    if entry is None:
        column.addWidget(label(tr("Choose a file on the left to read what is in it."), "lead", wrap=True))
        column.addStretch(1)
        return page
    report = entry.report
    column.addWidget(label(report.name, "title", wrap=True))
    if not entry.openable:
        said = report.problems or (
            tr("It goes with a checkpoint: put it beside the checkpoint, or drop both together."),
        )
        _list(column, tr("What is wrong") if report.problems else tr("Not a model by itself"), said)
    column.addWidget(_table(facts_table(entry), report.path))
    if entry.companions:
        _list(column, tr("Beside it"), tuple(_companion(companion) for companion in entry.companions))
    if report.notes:
        _list(column, tr("Notes"), report.notes)
    column.addStretch(1)
    return page


def _companion(companion: Companion) -> str:
    kind = tr("sidecar") if companion.report.kind == "sidecar" else tr("vision tower")
    line = f"{companion.path.name}: {kind}, {size_text(companion.report.weight_bytes)}"
    return tr("{line}. Does not fit: {problem}", line=line, problem=companion.problem) if companion.problem else line


def _list(column: QVBoxLayout, heading: str, lines: tuple[str, ...]) -> None:
    column.addSpacing(GRID)
    column.addWidget(label(heading, "heading"))
    for line in lines:
        text = label(line, wrap=True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(text)


def _table(rows: list[tuple[str, str]], path: str) -> QWidget:
    """Names and values; the path may be broken over lines."""
    table = QWidget()
    grid = QGridLayout(table)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(2 * GRID)
    grid.setVerticalSpacing(GRID // 2)
    grid.setColumnStretch(1, 1)
    top = Qt.AlignmentFlag.AlignTop
    for number, (name, value) in enumerate(rows):
        text = label(value.replace("/", "/\u200b") if value == path else value, wrap=True)
        caption = label(name, "caption")
        caption.setContentsMargins(0, 1, 0, 0)  # its smaller type on the line of the value
        grid.addWidget(caption, number, 0, top)
        grid.addWidget(text, number, 1, top)
    return table
