"""Everything that can be done, in one table: menus, shortcuts and the sheet that lists them are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from app.icons import put_icon
from app.language import mark, tr
from app.theme import GRID
from app.widgets import ScrollingPage, label, named, open_at


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One thing that can be done, in English; `&` marks the menu key, a `name` of '' is a separator."""

    menu: str
    name: str
    text: str = ""
    keys: str = ""
    icon: str = ""
    checkable: bool = False


SEPARATOR = ""
MODEL, CHAT, RUNS = mark("&Model"), mark("&Chat"), mark("&Runs")
MESSAGE, VIEW, HELP = mark("Me&ssage"), mark("&View"), mark("&Help")
ACTIONS = (
    ActionSpec(MODEL, "library", mark("&Library…"), "Ctrl+L", "library"),
    ActionSpec(MODEL, "download", mark("Do&wnload a model…"), "Ctrl+Shift+H"),
    ActionSpec(MODEL, "open_folder", mark("&Open a checkpoint folder…"), "Ctrl+O", "open"),
    ActionSpec(MODEL, "open_file", mark("Open a model &file…"), "Ctrl+Shift+L", "file"),
    ActionSpec(MODEL, "open_demo", mark("Open the &demo"), "Ctrl+Shift+D", "demo"),
    ActionSpec(MODEL, SEPARATOR),
    ActionSpec(MODEL, "add_sidecar", mark("Add a &sidecar…"), "Ctrl+Shift+S", "sidecar"),
    ActionSpec(MODEL, SEPARATOR),
    ActionSpec(MODEL, "quit", mark("&Quit"), "Ctrl+Q"),
    ActionSpec(CHAT, "new_chat", mark("&New chat"), "Ctrl+N", "new"),
    ActionSpec(CHAT, "regenerate", mark("&Regenerate the last reply"), "Ctrl+R", "regenerate"),
    ActionSpec(CHAT, "stop", mark("&Stop"), "Esc", "stop"),  # not translated: Qt knows keys by these names
    ActionSpec(CHAT, "answer_now", mark("Answer no&w, without more thinking"), "Ctrl+Shift+N"),
    ActionSpec(CHAT, SEPARATOR),
    ActionSpec(CHAT, "search_chats", mark("&Search conversations"), "Ctrl+Shift+F"),
    ActionSpec(CHAT, "rename_chat", mark("Re&name this conversation"), "F2"),
    ActionSpec(CHAT, "delete_chat", mark("&Delete this conversation"), "Ctrl+Shift+Backspace"),
    ActionSpec(CHAT, "undo_delete", mark("&Undo the last deletion"), "Ctrl+Shift+Z"),
    ActionSpec(CHAT, "export_chat", mark("&Export this conversation…"), "Ctrl+E"),
    ActionSpec(CHAT, SEPARATOR),
    ActionSpec(CHAT, "system_prompt", mark("S&ystem prompt…"), "Ctrl+Shift+Y"),
    ActionSpec(CHAT, "attach", mark("&Attach files…"), "Ctrl+Shift+A", "attach"),
    ActionSpec(CHAT, "write", mark("&Write a message"), "Ctrl+J"),
    ActionSpec(RUNS, "open_run", mark("&Open a run…"), "Ctrl+Shift+O", "file"),
    ActionSpec(RUNS, "show_runs", mark("&List of runs"), "Ctrl+Shift+R", checkable=True),
    ActionSpec(RUNS, SEPARATOR),
    ActionSpec(RUNS, "previous_round", mark("Pre&vious round"), "Alt+Left"),
    ActionSpec(RUNS, "next_round", mark("&Next round"), "Alt+Right"),
    ActionSpec(RUNS, "all_rounds", mark("Show &all rounds"), "Alt+End"),
    ActionSpec(RUNS, SEPARATOR),
    ActionSpec(RUNS, "prove", mark("&Prove the last reply"), "Ctrl+Shift+V"),
    ActionSpec(RUNS, "measure_plain", mark("&Measure plain decoding"), "Ctrl+Shift+M"),
    ActionSpec(VIEW, "fold_thinking", mark("&Fold or unfold thinking"), "Ctrl+T"),
    ActionSpec(MESSAGE, "message_edit", mark("&Edit and ask again"), "Ctrl+Shift+E", "edit"),
    ActionSpec(MESSAGE, "message_again", mark("&Regenerate this reply"), "Ctrl+Alt+R", "regenerate"),
    ActionSpec(MESSAGE, "go_on", mark("&Continue the reply"), "Ctrl+Shift+Return", "continue"),
    ActionSpec(MESSAGE, SEPARATOR),
    ActionSpec(MESSAGE, "branch_before", mark("&Previous branch"), "Ctrl+[", "previous"),
    ActionSpec(MESSAGE, "branch_after", mark("&Next branch"), "Ctrl+]", "next"),
    ActionSpec(MESSAGE, SEPARATOR),
    ActionSpec(MESSAGE, "message_copy", mark("C&opy the message"), "Ctrl+Shift+C", "copy"),
    ActionSpec(MESSAGE, "message_delete", mark("&Delete the message"), "Ctrl+Shift+Del", "delete"),
    ActionSpec(VIEW, "reading_view", mark("&Reading view"), "F4", "reading", checkable=True),
    ActionSpec(VIEW, "show_refused", mark("Show &refused drafts"), "Ctrl+H", checkable=True),
    ActionSpec(VIEW, SEPARATOR),
    ActionSpec(VIEW, "show_chats", mark("&Conversations"), "Ctrl+B", "sidebar", checkable=True),
    ActionSpec(VIEW, "show_inspector", mark("&Inspector"), "Ctrl+I", "inspector", checkable=True),
    ActionSpec(VIEW, "show_memory", mark("&Memory"), "Ctrl+M", "memory", checkable=True),
    ActionSpec(VIEW, "show_settings", mark("&Settings"), "Ctrl+,", "settings", checkable=True),
    ActionSpec(VIEW, "palette", mark("&Commands…"), "Ctrl+Shift+P"),
    ActionSpec(VIEW, "preferences", mark("&Preferences…"), "Ctrl+Shift+,"),
    ActionSpec(VIEW, "next_pane", mark("&Next pane"), "F6"),
    ActionSpec(VIEW, SEPARATOR),
    ActionSpec(VIEW, "theme_system", mark("Colours of the &system"), "", checkable=True),
    ActionSpec(VIEW, "theme_light", mark("&Light"), "", checkable=True),
    ActionSpec(VIEW, "theme_dark", mark("&Dark"), "", checkable=True),
    ActionSpec(VIEW, "switch_theme", mark("S&witch light and dark"), "Ctrl+Shift+T", "theme"),
    ActionSpec(HELP, "shortcuts", mark("&Keyboard shortcuts"), "F1", "help"),
    ActionSpec(HELP, "tour", mark("Show the &hints again")),
    ActionSpec(HELP, "log", mark("&Log"), "Ctrl+Shift+G"),
    ActionSpec(HELP, "doctor", mark("&Check this computer")),
    ActionSpec(HELP, SEPARATOR),
    ActionSpec(HELP, "updates", mark("Check for a &new version")),
    ActionSpec(HELP, "about", mark("&About Draftscope")),
)
OTHER_KEYS = (
    ("Enter", mark("Send the message")),  # not translated: Qt knows keys by these names
    ("Shift+Enter", mark("Break the line in a message")),
)


ROLES = {
    "about": QAction.MenuRole.AboutRole,
    "preferences": QAction.MenuRole.PreferencesRole,
    "quit": QAction.MenuRole.QuitRole,
}
"""What macOS has in the menu of the program. Qt would guess by English words, and take others for them."""


def make_actions(window: QMainWindow, slots: Mapping[str, Callable[[], object]]) -> dict[str, QAction]:
    """Make the menus of `window`; every name of the table needs its slot."""
    actions: dict[str, QAction] = {}
    menus = {title: window.menuBar().addMenu(tr(title)) for title in dict.fromkeys(spec.menu for spec in ACTIONS)}
    for spec in ACTIONS:
        if spec.name == SEPARATOR:
            menus[spec.menu].addSeparator()
            continue
        action = named(QAction(tr(spec.text), window, checkable=spec.checkable), spec.name)
        action.setMenuRole(ROLES.get(spec.name, QAction.MenuRole.NoRole))
        if spec.keys:
            action.setShortcut(QKeySequence(spec.keys))
            action.setToolTip(f"{plain(spec)} ({spec.keys})")
        if spec.icon:
            put_icon(action, spec.icon)
            action.setIconVisibleInMenu(not spec.checkable)  # its place in the menu is the check mark's
        # Without the action's check mark, which `triggered` would pass as the slot's first argument.
        action.triggered.connect(lambda _checked=False, slot=slots[spec.name]: slot())
        menus[spec.menu].addAction(action)
        actions[spec.name] = action
    return actions


def plain(spec: ActionSpec) -> str:
    """The text of an action in the person's language, without its menu key."""
    return without_key(tr(spec.text))


def without_key(text: str) -> str:
    """A menu's or an action's text without the sign before its key."""
    return text.replace("&", "")


class ShortcutSheet(QDialog):
    """All keys, by menu, in two columns that scroll where the screen is low."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("shortcutSheet")
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        groups: dict[str, list[tuple[str, str]]] = {}
        for spec in ACTIONS:
            if spec.keys:
                groups.setdefault(without_key(tr(spec.menu)), []).append((spec.keys, plain(spec)))
        groups[tr("Writing")] = [(keys, tr(text)) for keys, text in OTHER_KEYS]
        columns = QVBoxLayout(), QVBoxLayout()
        half, placed = sum(len(keys) + 1 for keys in groups.values()) / 2, 0
        for group, keys in groups.items():
            columns[placed >= half].addLayout(_keys(group, keys))
            placed += len(keys) + 1
        sheet = named(QWidget(), "settingsPanel")
        row = QHBoxLayout(sheet)
        row.setContentsMargins(0, 0, GRID, 0)
        row.setSpacing(5 * GRID)
        for part in columns:
            part.setSpacing(3 * GRID)
            part.addStretch(1)
            row.addLayout(part, 1)
        area = named(ScrollingPage(), "settingsScroll")
        area.setAccessibleName(tr("Keyboard shortcuts"))
        area.setWidget(sheet)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        column.addWidget(area, 1)
        column.addWidget(buttons)
        wanted = sheet.sizeHint()
        open_at(self, wanted.width() + 8 * GRID, wanted.height() + 11 * GRID)


def _keys(group: str, keys: Sequence[tuple[str, str]]) -> QGridLayout:
    """A menu's keys below its name."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(3 * GRID)
    grid.setVerticalSpacing(GRID)
    grid.setColumnStretch(0, 1)
    grid.addWidget(label(group, "heading"), 0, 0, 1, 2)
    for row, (key, text) in enumerate(keys, 1):
        said = QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) or key
        grid.addWidget(label(text), row, 0)
        grid.addWidget(label(said, "key"), row, 1, Qt.AlignmentFlag.AlignRight)
    return grid
