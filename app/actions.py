"""Everything that can be done, in one table: menus, shortcuts and the sheet that lists them are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QMainWindow, QVBoxLayout, QWidget

from app.icons import put_icon
from app.theme import GRID
from app.widgets import label, named


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One thing that can be done; `&` marks the menu key, a `name` of '' is a separator."""

    menu: str
    name: str
    text: str = ""
    keys: str = ""
    icon: str = ""
    checkable: bool = False


SEPARATOR = ""
ACTIONS = (
    ActionSpec("&Model", "library", "&Library…", "Ctrl+L", "library"),
    ActionSpec("&Model", "download", "Do&wnload a model…", "Ctrl+Shift+H"),
    ActionSpec("&Model", "open_folder", "&Open a checkpoint folder…", "Ctrl+O", "open"),
    ActionSpec("&Model", "open_file", "Open a model &file…", "Ctrl+Shift+L", "file"),
    ActionSpec("&Model", "open_demo", "Open the &demo", "Ctrl+Shift+D", "demo"),
    ActionSpec("&Model", SEPARATOR),
    ActionSpec("&Model", "add_sidecar", "Add a &sidecar…", "Ctrl+Shift+S", "sidecar"),
    ActionSpec("&Model", SEPARATOR),
    ActionSpec("&Model", "quit", "&Quit", "Ctrl+Q"),
    ActionSpec("&Chat", "new_chat", "&New chat", "Ctrl+N", "new"),
    ActionSpec("&Chat", "regenerate", "&Regenerate the last reply", "Ctrl+R", "regenerate"),
    ActionSpec("&Chat", "stop", "&Stop", "Esc", "stop"),
    ActionSpec("&Chat", "answer_now", "Answer no&w, without more thinking", "Ctrl+Shift+N"),
    ActionSpec("&Chat", SEPARATOR),
    ActionSpec("&Chat", "search_chats", "&Search conversations", "Ctrl+Shift+F"),
    ActionSpec("&Chat", "rename_chat", "Re&name this conversation", "F2"),
    ActionSpec("&Chat", "delete_chat", "&Delete this conversation", "Ctrl+Shift+Backspace"),
    ActionSpec("&Chat", "undo_delete", "&Undo the last deletion", "Ctrl+Shift+Z"),
    ActionSpec("&Chat", "export_chat", "&Export this conversation…", "Ctrl+E"),
    ActionSpec("&Chat", SEPARATOR),
    ActionSpec("&Chat", "system_prompt", "S&ystem prompt…", "Ctrl+Shift+Y"),
    ActionSpec("&Chat", "attach", "&Attach files…", "Ctrl+Shift+A", "attach"),
    ActionSpec("&Chat", "write", "&Write a message", "Ctrl+J"),
    ActionSpec("&Runs", "open_run", "&Open a run…", "Ctrl+Shift+O", "file"),
    ActionSpec("&Runs", "show_runs", "&List of runs", "Ctrl+Shift+R", checkable=True),
    ActionSpec("&Runs", SEPARATOR),
    ActionSpec("&Runs", "previous_round", "Pre&vious round", "Alt+Left"),
    ActionSpec("&Runs", "next_round", "&Next round", "Alt+Right"),
    ActionSpec("&Runs", "all_rounds", "Show &all rounds", "Alt+End"),
    ActionSpec("&Runs", SEPARATOR),
    ActionSpec("&Runs", "prove", "&Prove the last reply", "Ctrl+Shift+V"),
    ActionSpec("&Runs", "measure_plain", "&Measure plain decoding", "Ctrl+Shift+M"),
    ActionSpec("&View", "fold_thinking", "&Fold or unfold thinking", "Ctrl+T"),
    ActionSpec("Me&ssage", "message_edit", "&Edit and ask again", "Ctrl+Shift+E", "edit"),
    ActionSpec("Me&ssage", "message_again", "&Regenerate this reply", "Ctrl+Alt+R", "regenerate"),
    ActionSpec("Me&ssage", "go_on", "&Continue the reply", "Ctrl+Shift+Return", "continue"),
    ActionSpec("Me&ssage", SEPARATOR),
    ActionSpec("Me&ssage", "branch_before", "&Previous branch", "Ctrl+[", "previous"),
    ActionSpec("Me&ssage", "branch_after", "&Next branch", "Ctrl+]", "next"),
    ActionSpec("Me&ssage", SEPARATOR),
    ActionSpec("Me&ssage", "message_copy", "C&opy the message", "Ctrl+Shift+C", "copy"),
    ActionSpec("Me&ssage", "message_delete", "&Delete the message", "Ctrl+Shift+Del", "delete"),
    ActionSpec("&View", "reading_view", "&Reading view", "F4", "reading", checkable=True),
    ActionSpec("&View", "show_refused", "Show &refused drafts", "Ctrl+H", checkable=True),
    ActionSpec("&View", SEPARATOR),
    ActionSpec("&View", "show_chats", "&Conversations", "Ctrl+B", "sidebar", checkable=True),
    ActionSpec("&View", "show_inspector", "&Inspector", "Ctrl+I", "inspector", checkable=True),
    ActionSpec("&View", "show_memory", "&Memory", "Ctrl+M", "memory", checkable=True),
    ActionSpec("&View", "show_settings", "&Settings", "Ctrl+,", "settings", checkable=True),
    ActionSpec("&View", "palette", "&Commands…", "Ctrl+Shift+P"),
    ActionSpec("&View", "preferences", "&Preferences…", "Ctrl+Shift+,"),
    ActionSpec("&View", "next_pane", "&Next pane", "F6"),
    ActionSpec("&View", SEPARATOR),
    ActionSpec("&View", "theme_system", "Colours of the &system", "", checkable=True),
    ActionSpec("&View", "theme_light", "&Light", "", checkable=True),
    ActionSpec("&View", "theme_dark", "&Dark", "", checkable=True),
    ActionSpec("&View", "switch_theme", "S&witch light and dark", "Ctrl+Shift+T", "theme"),
    ActionSpec("&Help", "shortcuts", "&Keyboard shortcuts", "F1", "help"),
    ActionSpec("&Help", "tour", "Show the &hints again"),
    ActionSpec("&Help", "log", "&Log", "Ctrl+Shift+G"),
    ActionSpec("&Help", "doctor", "&Check this computer"),
    ActionSpec("&Help", SEPARATOR),
    ActionSpec("&Help", "updates", "Check for a &new version"),
    ActionSpec("&Help", "about", "&About Draftscope"),
)
OTHER_KEYS = (("Enter", "Send the message"), ("Shift+Enter", "Break the line in a message"))


def make_actions(window: QMainWindow, slots: Mapping[str, Callable[[], object]]) -> dict[str, QAction]:
    """Make the menus of `window`; every name of the table needs its slot."""
    actions: dict[str, QAction] = {}
    menus = {title: window.menuBar().addMenu(title) for title in dict.fromkeys(spec.menu for spec in ACTIONS)}
    for spec in ACTIONS:
        if spec.name == SEPARATOR:
            menus[spec.menu].addSeparator()
            continue
        action = named(QAction(spec.text, window, checkable=spec.checkable), spec.name)
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
    """The text of an action without its menu key."""
    return spec.text.replace("&", "")


class ShortcutSheet(QDialog):
    """All keys, by menu."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("shortcutSheet")
        self.setWindowTitle("Keyboard shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        grid = QGridLayout()
        grid.setHorizontalSpacing(4 * GRID)
        grid.setVerticalSpacing(GRID)
        entries: list[tuple[str, str, str]] = [
            (spec.menu.replace("&", ""), spec.keys, plain(spec)) for spec in ACTIONS if spec.keys
        ]
        entries += [("Writing", keys, text) for keys, text in OTHER_KEYS]
        heading = ""
        for group, keys, text in entries:
            if group != heading:
                heading = group
                grid.setRowMinimumHeight(grid.rowCount(), GRID)
                grid.addWidget(label(group, "heading"), grid.rowCount() + 1, 0, 1, 2)
            row = grid.rowCount()
            grid.addWidget(label(text), row, 0)
            key = label(QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText) or keys, "key")
            grid.addWidget(key, row, 1, Qt.AlignmentFlag.AlignRight)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        column.addLayout(grid)
        column.addWidget(buttons)
