"""The library's window: folders that are watched, the checkpoints in them, and what can be done with each."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QProgressBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.language import mark, tr, trn
from app.library.catalogue import Catalogue
from app.library.details import Details
from app.library.list_view import EntryDelegate, EntryModel
from app.library.scan import usual_folders
from app.theme import GRID, Theme
from app.widgets import label, named, open_at, push

INVITATION = mark(
    "Watch a folder, and the checkpoints in it are listed here with what their headers say. Weights are not read, and "
    "no folder is looked into unasked."
)


class LibraryDialog(QDialog):
    """Shows a catalogue. What is watched and forgotten is asked for by signals and kept elsewhere."""

    open_requested = Signal(object, object, object)  # checkpoint, sidecar or None, vision tower or None
    folders_wanted = Signal(object)  # every watched folder, as a tuple of paths
    forget_requested = Signal(object)  # Path
    download_requested = Signal()

    def __init__(self, catalogue: Catalogue, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("libraryDialog")
        self.setWindowTitle(tr("Library"))
        open_at(self, 120 * GRID, 76 * GRID)
        self._catalogue = catalogue
        self.search = QLineEdit(placeholderText=tr("Search by name, type or folder"), clearButtonEnabled=True)
        self.search.setAccessibleName(tr("Search the library"))
        for clear in self.search.findChildren(QToolButton):
            clear.setAccessibleName(tr("Clear the search"))
        self.search.textChanged.connect(self._show)
        self.model = EntryModel()
        self.delegate = EntryDelegate(theme)
        self.list = named(QListView(), "libraryList")
        self.list.setModel(self.model)
        self.list.setItemDelegate(self.delegate)
        self.list.setAccessibleName(tr("Checkpoints"))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.list.activated.connect(self._on_activated)
        self.details = Details()
        self.details.open_requested.connect(self._open)
        self.details.forget_requested.connect(self.forget_requested)
        self.state = label("", "caption", wrap=True)
        self.meter = QProgressBar(textVisible=False)
        self.meter.setAccessibleName(tr("Progress of reading headers"))
        self.folders_button = push(tr("Folders"), name=tr("Watched folders"))
        self.folders_menu = QMenu(self.folders_button)
        self.folders_menu.setToolTipsVisible(True)
        self.folders_menu.aboutToShow.connect(self._fill_folders)
        self.folders_button.setMenu(self.folders_menu)
        self.download_button = push(
            tr("Download…"), self.download_requested.emit, name=tr("Download a model from the hub")
        )
        self.invitation = self._make_invitation()
        self._wanted: Path | None = None
        self._arrange()
        catalogue.changed.connect(self._show)
        self._show()

    def _make_invitation(self) -> QWidget:
        """What is shown below the list while no folder is watched."""
        card = named(QFrame(), "group")
        column = QVBoxLayout(card)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.setSpacing(GRID)
        column.addWidget(label(tr("Your own models"), "heading"))
        column.addWidget(label(tr(INVITATION), "caption", wrap=True))
        self.first_folder = push(tr("Watch a folder…"), self.choose_folder, kind="primary")
        column.addWidget(self.first_folder)
        for offer in usual_folders(os.environ, Path.home()):
            button = push(tr("Watch {folder}", folder=offer.name), tip=str(offer.path))
            button.clicked.connect(lambda _=False, path=offer.path: self._watch(path))
            column.addWidget(button)
        return card

    def _arrange(self) -> None:
        left = QWidget()
        left.setFixedWidth(46 * GRID)
        head, column = QHBoxLayout(), QVBoxLayout(left)
        head.setSpacing(GRID)
        head.addWidget(self.search, 1)
        head.addWidget(self.folders_button)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID)
        column.addLayout(head)
        column.addWidget(self.list, 1)
        column.addWidget(self.meter)
        below = QHBoxLayout()
        below.addWidget(self.state, 1)
        below.addWidget(self.download_button)
        column.addLayout(below)
        column.addWidget(self.invitation)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        row.setSpacing(3 * GRID)
        row.addWidget(left)
        row.addWidget(self.details, 1)

    def apply_theme(self, theme: Theme) -> None:
        self.delegate.theme = theme
        self.list.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows in the search field move through the list, Enter opens, Delete in the list forgets."""
        key = event.key()
        if self.search.hasFocus() and key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif self.search.hasFocus() and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_activated(self.list.currentIndex())
        elif self.list.hasFocus() and key == Qt.Key.Key_Delete and self.details.entry is not None:
            self.forget_requested.emit(self.details.entry.path)
        else:
            super().keyPressEvent(event)

    @Slot()
    def choose_folder(self) -> None:
        """Ask for one more folder to watch."""
        if folder := QFileDialog.getExistingDirectory(self, tr("Watch a folder for checkpoints"), str(Path.home())):
            self._watch(Path(folder))

    def _watch(self, folder: Path) -> None:
        self.folders_wanted.emit(tuple(dict.fromkeys((*self._catalogue.folders, folder))))

    def _unwatch(self, folder: Path) -> None:
        self.folders_wanted.emit(tuple(path for path in self._catalogue.folders if path != folder))

    @Slot()
    def _fill_folders(self) -> None:
        menu, watched = self.folders_menu, self._catalogue.folders
        menu.clear()
        menu.addAction(tr("Watch a folder…")).triggered.connect(self.choose_folder)
        for offer in usual_folders(os.environ, Path.home()):
            if offer.path not in watched:
                action = menu.addAction(tr("Watch {folder}", folder=offer.name))
                action.setToolTip(str(offer.path))
                action.triggered.connect(lambda _=False, path=offer.path: self._watch(path))
        menu.addSeparator()
        menu.addAction(tr("Read again")).triggered.connect(self._catalogue.refresh)
        if watched:
            menu.addSeparator()
        for folder in watched:
            action = menu.addAction(tr("Stop watching {folder}", folder=folder.name or folder))
            action.setToolTip(str(folder))
            action.triggered.connect(lambda _=False, path=folder: self._unwatch(path))

    def show_downloading(self, share: float | None, unfinished: int) -> None:
        """How far the download that runs is, if one does, or how many wait to be resumed."""
        if share is not None:
            percent = f"{share:.0%}".replace("%", " %")
            self.download_button.setText(tr("Downloading: {percent}…", percent=percent))
        elif unfinished:
            said = trn("Downloads: {n} unfinished…", "Downloads: {n} unfinished…", unfinished)
            self.download_button.setText(said)
        else:
            self.download_button.setText(tr("Download…"))

    def choose_in(self, folder: Path) -> None:
        """Choose the first entry of a folder, as soon as it is there."""
        self._wanted = folder
        self.search.clear()
        self._show()

    @Slot()
    def _show(self) -> None:
        shown, chosen = self._catalogue, self.details.entry
        self.model.show(shown.entries, self.search.text())
        for entry in self.model.rows:
            if self._wanted is not None and entry.path.is_relative_to(self._wanted):
                self._wanted, chosen = None, entry
        self.invitation.setVisible(not shown.folders)
        self.meter.setVisible(shown.reading)
        self.meter.setRange(0, shown.total)
        self.meter.setValue(shown.done)
        self.state.setText(self._state())
        row = self.model.row_of(chosen.report.path) if chosen else -1
        if self.model.rows:
            self.list.setCurrentIndex(self.model.index(max(row, 0)))
        self._on_current(self.list.currentIndex())

    def _state(self) -> str:
        shown = self._catalogue
        if shown.reading:
            if not shown.total:
                return tr("Looking through the folders…")
            return tr("Reading headers: {done} of {total}", done=shown.done, total=shown.total)
        if not shown.entries:
            return tr("Nothing that looks like a checkpoint was found in the watched folders.")
        if not self.model.rows:
            count = len(shown.entries)
            return trn("None of {n} matches the search.", "None of {n} matches the search.", count)
        usable = sum(entry.openable for entry in shown.entries)
        count = len(shown.entries)
        return trn("{usable} of {n} can be opened", "{usable} of {n} can be opened", count, usable=usable)

    @Slot(QModelIndex)
    def _on_current(self, index: QModelIndex) -> None:
        entry = self.model.rows[index.row()] if index.isValid() else None
        if entry != self.details.entry:
            self.details.show_entry(entry)

    @Slot(QModelIndex)
    def _on_activated(self, _index: QModelIndex) -> None:
        self.details.open.click()

    @Slot(object, object, object)
    def _open(self, path: Path, sidecar: Path | None, tower: Path | None) -> None:
        self.open_requested.emit(path, sidecar, tower)
        self.accept()
