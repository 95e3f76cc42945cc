"""Brings the library's parts together: the catalogue, its dialog, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.icons import ink_icons
from app.language import tr
from app.memory import Memory
from app.theme import Theme

if TYPE_CHECKING:
    from app.library.catalogue import Catalogue
    from app.library.dialog import LibraryDialog
    from app.library.hub.desk import HubDesk, Transfer
    from app.library.hub.dialog import HubDialog
    from app.library.hub.order import Order


class Shelf(QObject):
    """The library of one window; nothing is read before it is opened for the first time."""

    open_requested = Signal(object, object, object)  # checkpoint, sidecar or None, vision tower or None

    told = Signal(str, str, object)
    """What became of a download whose window is closed: a sentence, its level, and what can be done about it."""

    def __init__(self, window: QWidget, memory: Memory, demo: Callable[[], Path], downloads: Path) -> None:
        """`downloads`: where models go that are fetched, unless the person chose another folder."""
        super().__init__(window)
        self._window = window
        self._memory = memory
        self._demo = demo
        self._catalogue: Catalogue | None = None
        self.dialog: LibraryDialog | None = None
        self._downloads = downloads
        self._theme: Theme | None = None
        self.hub: HubDesk | None = None
        self.download: HubDialog | None = None

    @property
    def catalogue(self) -> Catalogue:
        """What is in the watched folders; made when it is first asked for."""
        if self._catalogue is None:
            from app.library.catalogue import Catalogue

            self._catalogue = Catalogue(self)
        return self._catalogue

    def show(self, theme: Theme) -> None:
        """Open the library, or bring it to the front."""
        self._theme = theme
        if self.dialog is None:
            from app.library.dialog import LibraryDialog

            self.dialog = LibraryDialog(self.catalogue, theme, self._window)
            self.dialog.open_requested.connect(self._open)
            self.dialog.folders_wanted.connect(self._watch)
            self.dialog.forget_requested.connect(self._forget)
            self.dialog.download_requested.connect(self._download)
            ink_icons(self.dialog, theme)
        self.dialog.apply_theme(theme)
        self.dialog.details.remembered = self._memory.settings.towers
        self._show_downloading()
        self._read()
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
        self.dialog.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot()
    def _download(self) -> None:
        """In the theme of now, not in that of when the library was made."""
        assert self._theme is not None
        self.show_download(self._theme)

    def show_download(self, theme: Theme) -> None:
        """Open the window for downloads, or bring it to the front."""
        if self.download is None:
            from app.library.hub.desk import HubDesk
            from app.library.hub.dialog import HubDialog

            self.hub = HubDesk(self._memory, self._downloads, self)
            self.hub.fetched.connect(self._on_fetched)
            self.hub.broke.connect(self._on_broke)
            self.hub.progressed.connect(self._show_downloading)
            self.hub.transfers_changed.connect(self._show_downloading)
            self.download = HubDialog(self.hub, self._window)
            self.download.wanted_in_library.connect(self._show_fetched)
            ink_icons(self.download, theme)
        self._theme = theme
        self.download.show()
        self.download.raise_()
        self.download.activateWindow()
        self.download.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot(object)
    def _on_fetched(self, order: Order) -> None:
        """Watch the folder for downloads, unless it is watched already, and read what is new in it."""
        assert self.hub is not None
        place, folders = self.hub.place, tuple(map(Path, self._memory.settings.folders))
        if not order.folder.is_relative_to(place):
            place = order.folder
        if not any(place.is_relative_to(folder) for folder in folders):
            folders = (*folders, place)
        self._watch(folders)
        if self.download is not None and not self.download.isVisible():
            remedy = (tr("Show it"), lambda: self._show_fetched(order))
            self.told.emit(tr("{repo} has been downloaded and is in the library.", repo=order.repo), "info", remedy)

    @Slot(object)
    def _on_broke(self, transfer: Transfer) -> None:
        if self.download is not None and not self.download.isVisible():
            remedy = (tr("Show downloads"), self.download.show)
            self.told.emit(
                tr("The download of {repo} waits. {problem}", repo=transfer.order.repo, problem=transfer.problem),
                "warning",
                remedy,
            )

    @Slot()
    def _show_downloading(self) -> None:
        if self.dialog is not None:
            share = self.hub.share() if self.hub is not None else None
            self.dialog.show_downloading(share, len(self._memory.settings.downloads))

    @Slot(object)
    def _show_fetched(self, order: Order) -> None:
        """Open the library at what has been fetched."""
        assert self._theme is not None
        self.show(self._theme)
        assert self.dialog is not None
        self.dialog.choose_in(order.folder)

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        if self.dialog is not None:
            self.dialog.apply_theme(theme)

    def close(self) -> None:
        """End the threads of the library and of downloads; these go on at another start."""
        if self._catalogue is not None:
            self._catalogue.close()
        if self.hub is not None:
            self.hub.close()

    def _read(self) -> None:
        settings = self._memory.settings
        recent = [Path(model.path) for model in settings.recent]
        files = dict.fromkeys([*(path for path in recent if path.exists()), self._demo()])
        self.catalogue.show(map(Path, settings.folders), files, settings.forgotten)

    @Slot(object, object, object)
    def _open(self, path: Path, sidecar: Path | None, tower: Path | None) -> None:
        """Ask for a checkpoint with what was chosen; the tower of last time is not to come back unasked."""
        towers = self._memory.settings.towers
        if tower is None and str(path) in towers:
            self._memory.change(towers={key: kept for key, kept in towers.items() if key != str(path)})
        self.open_requested.emit(path, sidecar, tower)

    @Slot(object)
    def _watch(self, folders: tuple[Path, ...]) -> None:
        """Watch these; a folder that is new brings back what was forgotten in it."""
        settings = self._memory.settings
        fresh = [folder for folder in folders if str(folder) not in settings.folders]
        kept = tuple(p for p in settings.forgotten if not any(Path(p).is_relative_to(folder) for folder in fresh))
        self._memory.change(folders=tuple(map(str, folders)), forgotten=kept)
        self._read()

    @Slot(object)
    def _forget(self, path: Path) -> None:
        """Take it off the library and off the recent ones."""
        settings = self._memory.settings
        recent = tuple(model for model in settings.recent if Path(model.path) != path)
        self._memory.change(recent=recent, forgotten=tuple(dict.fromkeys((*settings.forgotten, str(path)))))
        self._read()
