"""The panels beside the chat: each a dock that can be moved, detached, closed, and called up again by its action."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QTabWidget, QToolButton, QWidget

from app.language import tr
from app.theme import GRID
from app.widgets import label, named, tool

RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
RIGHT_WIDTH = 45 * GRID, 0.26, 68 * GRID
LEFT_WIDTH = 30 * GRID, 0.16, 38 * GRID
"""Least, share of the window, most."""


class DockTitle(QWidget):
    """A panel's title line, with buttons of a size that can be hit."""

    def __init__(self, dock: QDockWidget, panel: str) -> None:
        """`panel`: what it is called within a sentence."""
        super().__init__(dock)
        self.setObjectName("dockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID, GRID // 2, GRID, GRID // 2)
        row.setSpacing(GRID // 2)
        row.addWidget(label(dock.windowTitle(), "heading"))
        row.addStretch(1)
        detach, close = tr("Detach {panel}", panel=panel), tr("Close {panel}", panel=panel)
        row.addWidget(tool("float", detach, lambda: dock.setFloating(not dock.isFloating()), role="muted"))
        row.addWidget(tool("close", close, dock.close, role="muted"))
        for button in self.findChildren(QToolButton):
            button.setFixedSize(3 * GRID, 3 * GRID)


class Docks(QObject):
    """Makes the docks as tabs of one place and keeps their actions checked while they can be seen."""

    def __init__(
        self,
        window: QMainWindow,
        panels: Mapping[str, tuple[str, str, QWidget]],
        left: Mapping[str, tuple[str, str, QWidget]] | None = None,
    ) -> None:
        """`panels`: name of the show action → title, the same within a sentence, and widget, at the right as tabs; only
        the first is open until a layout is restored. `left`: the same for the other side."""
        super().__init__(window)
        self._window = window
        self._actions: dict[str, QAction] = {}
        self._in_sight: set[str] = set()
        window.setTabPosition(RIGHT, QTabWidget.TabPosition.South)
        window.setDockOptions(QMainWindow.DockOption.AllowTabbedDocks | QMainWindow.DockOption.AllowNestedDocks)
        self.docks = {name: self._dock(window, name, *panel) for name, panel in panels.items()}
        first, *others = self._right = list(self.docks.values())
        for name, panel in (left or {}).items():
            self.docks[name] = self._dock(window, name, *panel, LEFT)
        for dock in others:
            window.tabifyDockWidget(first, dock)
            dock.hide()
        self.fit()

    def fit(self) -> None:
        """Give the panels their usual share of the window, until a person draws them wider or narrower."""
        width = self._window.width()
        for dock in self.docks.values():
            least, share, most = RIGHT_WIDTH if dock in self._right else LEFT_WIDTH
            self._window.resizeDocks([dock], [int(min(most, max(least, share * width)))], Qt.Orientation.Horizontal)

    def _dock(
        self,
        window: QMainWindow,
        name: str,
        title: str,
        within: str,
        panel: QWidget,
        area: Qt.DockWidgetArea = RIGHT,
    ) -> QDockWidget:
        dock = named(QDockWidget(title, window), name)
        dock.setTitleBarWidget(DockTitle(dock, within))
        dock.setWidget(panel)
        dock.setAccessibleName(title)
        window.addDockWidget(area, dock)
        dock.visibilityChanged.connect(lambda seen: self._on_seen(name, seen))
        return dock

    def follow(self, actions: Mapping[str, QAction]) -> None:
        """Keep these checkable actions in line with the docks of the same name."""
        self._actions = {name: actions[name] for name in self.docks}
        self.show_state()

    def in_sight(self) -> list[QWidget]:
        """The panels that can be seen now; those behind another tab cannot."""
        return [dock.widget() for name, dock in self.docks.items() if name in self._in_sight]

    def toggle(self, name: str) -> None:
        """Close a panel that is in sight; open one that is closed, or bring it to the front of its tabs."""
        dock = self.docks[name]
        if name in self._in_sight:
            dock.close()
        else:
            dock.show()
            dock.raise_()

    def _on_seen(self, name: str, seen: bool) -> None:
        if seen:
            self._in_sight.add(name)
        else:
            self._in_sight.discard(name)
        self.show_state()

    @Slot()
    def show_state(self) -> None:
        for name, action in self._actions.items():
            action.setChecked(name in self._in_sight)
