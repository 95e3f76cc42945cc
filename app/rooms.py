"""The rooms beside the chat that open in windows of their own, and the actions by which they are entered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from app.library.shelf import Shelf
from app.memory import Memory
from app.style import Stylist


class Rooms(QObject):
    """Makes each room when it is first entered."""

    open_requested = Signal(object, object)  # Path, Path | None

    def __init__(self, window: QMainWindow, memory: Memory, stylist: Stylist, demo: Callable[[], Path]) -> None:
        super().__init__(window)
        self._stylist = stylist
        self.shelf = Shelf(window, memory, demo)
        self.shelf.open_requested.connect(self.open_requested)
        stylist.changed.connect(self.shelf.apply_theme)

    def slots(self) -> Mapping[str, Callable[[], object]]:
        """What the actions of these rooms do."""
        return {"library": lambda: self.shelf.show(self._stylist.theme)}

    def close(self) -> None:
        """End what the rooms have running."""
        self.shelf.close()
