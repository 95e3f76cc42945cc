"""The window for downloads: name a repository or search for one, choose what of it to fetch, follow what comes."""

from __future__ import annotations

from pathlib import Path

import psutil
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.language import mark, tr, trn
from app.library.choice import size_text
from app.library.hub import client
from app.library.hub.desk import HubDesk, Transfer
from app.library.hub.files import Hit, Part, PartKind
from app.library.hub.order import SPARE_BYTES, free_bytes
from app.library.hub.transfer_row import TransferRow
from app.theme import GRID
from app.widgets import label, named, open_at, push

DATA = Qt.ItemDataRole.UserRole
KINDS: dict[PartKind, str] = {
    "model": mark("Model"),
    "sidecar": mark("MTP sidecar"),
    "vision tower": mark("Vision tower"),  # not translated: the key
}
_START, _HITS, _PARTS = range(3)


class HubDialog(QDialog):
    """Shows a desk. `wanted_in_library` asks to show what has been fetched."""

    wanted_in_library = Signal(object)  # Order

    def __init__(self, desk: HubDesk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("hubDialog")
        self.setWindowTitle(tr("Download a model"))
        open_at(self, 96 * GRID, 76 * GRID)
        self._desk = desk
        self.field = QLineEdit(
            placeholderText=tr("owner/name, an address, or words to search for"), clearButtonEnabled=True
        )
        self.field.setAccessibleName(tr("Repository, its address, or words to search for"))
        for clear in self.field.findChildren(QToolButton):
            clear.setAccessibleName(tr("Clear the field"))
        self.field.returnPressed.connect(self._look)
        self.ask = push(tr("Look up"), self._look, kind="primary", name=tr("Look up the repository"))
        self.said = label("", "caption", wrap=True)
        self.hits = named(QListWidget(), "hubHits")
        self.hits.setAccessibleName(tr("Repositories found"))
        self.hits.itemActivated.connect(self._on_hit)
        self.parts = self._make_tree()
        self.pages = QStackedWidget()
        for page in (self._make_start(), self.hits, self.parts):
            self.pages.addWidget(page)
        self.where = label("", wrap=True)
        self.change = push(tr("Change…"), self.choose_place, name=tr("Choose the folder for downloads"))
        self.sum = label("", "caption", wrap=True)
        self.fetch = push(tr("Download"), self._start, kind="primary", name=tr("Download what is chosen"))
        self.rows: list[TransferRow] = []
        self._arrange()
        desk.looked.connect(self._show_answer)
        desk.transfers_changed.connect(self._show_transfers)
        desk.progressed.connect(self._refresh_rows)
        self._show_answer()
        self._show_transfers()

    def _make_start(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(GRID, 2 * GRID, GRID, GRID)
        self.lead = label("", "lead", wrap=True)
        column.addWidget(self.lead)
        column.addStretch(1)
        return page

    def _make_tree(self) -> QTreeWidget:
        tree = named(QTreeWidget(), "hubParts")
        tree.setAccessibleName(tr("What can be downloaded"))
        tree.setHeaderLabels([tr("File"), tr("Kind"), tr("Format"), tr("Size")])
        tree.setRootIsDecorated(False)
        tree.setUniformRowHeights(True)
        tree.header().setStretchLastSection(False)
        tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        tree.itemChanged.connect(self._show_sum)
        tree.itemActivated.connect(self._toggle)
        return tree

    def _arrange(self) -> None:
        head, place, foot = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        head.addWidget(self.field, 1)
        head.addWidget(self.ask)
        place.addWidget(self.where, 1)
        place.addWidget(self.change)
        foot.addWidget(self.sum, 1)
        foot.addWidget(self.fetch)
        for row in (head, place, foot):
            row.setSpacing(GRID)
        self._transfers = QVBoxLayout()
        self._transfers.setContentsMargins(0, 0, 0, 0)
        self._transfers.setSpacing(GRID)
        self._transfers.addStretch(1)
        holder = named(QWidget(), "settingsPanel")
        holder.setLayout(self._transfers)
        self.area = named(QScrollArea(), "settingsScroll")
        self.area.setAccessibleName(tr("Downloads"))
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(holder)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.setSpacing(GRID)
        column.addLayout(head)
        column.addWidget(self.said)
        column.addWidget(self.pages, 3)
        column.addLayout(place)
        column.addLayout(foot)
        column.addWidget(self.area, 2)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.lead.setText(
            tr(
                "Models come from {host}, which learns what you look up and fetch, and nothing else. Nothing is "
                "asked of it before you press a button here; nothing is fetched before you have seen its size.",
                host=client.host(),
            )
        )
        self._show_sum()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter is for the field and the lists: it presses no button by surprise."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)

    # Looking

    @Slot()
    def _look(self) -> None:
        self._desk.look(self.field.text())

    @Slot(QListWidgetItem)
    def _on_hit(self, item: QListWidgetItem) -> None:
        hit: Hit = item.data(DATA)
        self.field.setText(hit.repo)
        self._look()

    @Slot()
    def _show_answer(self) -> None:
        desk = self._desk
        self.ask.setEnabled(not desk.asking)
        self.said.setText(self._said())
        self.said.setVisible(bool(self.said.text()))
        self.hits.clear()
        for hit in desk.hits:
            self.hits.addItem(_hit_item(hit))
        self.hits.setCurrentRow(0)
        self._fill_parts()
        self.pages.setCurrentIndex(_PARTS if desk.parts else _HITS if desk.hits else _START)
        if desk.hits:
            self.hits.setFocus()
        elif desk.parts:
            self.parts.setFocus()
        self._show_sum()

    def _said(self) -> str:
        desk = self._desk
        if desk.asking:
            return tr("Asking {host}…", host=client.host())
        if desk.problem:
            return desk.problem
        if desk.hits:
            return trn(
                "{n} repository; Enter shows the files of one.",
                "{n} repositories; Enter shows the files of one.",
                len(desk.hits),
            )
        if desk.listing is not None:
            memory = size_text(psutil.virtual_memory().total)
            larger = tr("this computer has {memory} of memory; what is larger is streamed from disk.", memory=memory)
            return f"{desk.listing.repo} · {larger}"
        return ""

    def _fill_parts(self) -> None:
        tree = self.parts
        tree.blockSignals(True)
        tree.clear()
        for part in self._desk.parts:
            item = QTreeWidgetItem([part.name, tr(KINDS[part.kind]), part.format, size_text(part.size)])
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            chosen = part is self._desk.proposed
            item.setCheckState(0, Qt.CheckState.Checked if chosen else Qt.CheckState.Unchecked)
            item.setTextAlignment(3, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            item.setData(0, DATA, part)
            item.setToolTip(0, "\n".join(f"{file.path}: {size_text(file.size)}" for file in part.files))
            said = f"{part.name}, {tr(KINDS[part.kind])} {part.format}, {size_text(part.size)}"
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, said)
            tree.addTopLevelItem(item)
            if chosen:
                tree.setCurrentItem(item)
        tree.blockSignals(False)

    @Slot(QTreeWidgetItem)
    def _toggle(self, item: QTreeWidgetItem) -> None:
        checked = item.checkState(0) == Qt.CheckState.Checked
        item.setCheckState(0, Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked)

    # What and where to

    @property
    def chosen(self) -> list[Part]:
        """The parts that are ticked."""
        items = [self.parts.topLevelItem(i) for i in range(self.parts.topLevelItemCount())]
        return [item.data(0, DATA) for item in items if item and item.checkState(0) == Qt.CheckState.Checked]

    @Slot()
    def _show_sum(self) -> None:
        """How much is chosen, and whether it fits."""
        place = self._desk.place
        size, free = sum(part.size for part in self.chosen), free_bytes(place)
        fits = size + SPARE_BYTES <= free
        self.where.setText(tr("Into {folder}", folder=place))
        said = tr("Chosen: {size}", size=size_text(size)) if size else tr("Nothing is chosen yet")
        room = tr("free there: {size}", size=size_text(free))
        line = f"{said} · {room}"
        self.sum.setText(line if fits or not size else tr("{line}. That does not fit.", line=line))
        self.fetch.setEnabled(bool(size) and fits)

    @Slot()
    def choose_place(self) -> None:
        """Ask where downloads are to go."""
        if folder := QFileDialog.getExistingDirectory(self, tr("A folder for downloads"), str(self._desk.place.parent)):
            self._desk.put_into(Path(folder))

    @Slot()
    def _start(self) -> None:
        if problem := self._desk.start(self.chosen):
            self.said.setText(problem)
            self.said.show()

    # What comes

    @Slot()
    def _show_transfers(self) -> None:
        kept = {row.transfer: row for row in self.rows}
        self.rows = [kept.pop(t) if t in kept else self._make_row(t) for t in self._desk.transfers]
        for row in kept.values():
            self._transfers.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.area.setVisible(bool(self.rows))
        self._refresh_rows()
        self._show_sum()

    def _make_row(self, transfer: Transfer) -> TransferRow:
        row = TransferRow(self._desk, transfer)
        ordered = transfer.order
        row.show_in_library.clicked.connect(lambda: self.wanted_in_library.emit(ordered))
        self._transfers.insertWidget(0, row)
        return row

    @Slot()
    def _refresh_rows(self) -> None:
        for row in self.rows:
            row.refresh()


def _hit_item(hit: Hit) -> QListWidgetItem:
    told = [hit.repo, trn("fetched {n:,} time", "fetched {n:,} times", hit.downloads)]
    if hit.gated:
        told.append(tr("gated: needs your agreement"))
    item = QListWidgetItem("  ·  ".join(told))
    item.setData(DATA, hit)
    return item
