"""What the palette offers: every action of the menus, the models opened before, and the conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtGui import QAction, QKeySequence

from app.actions import ACTIONS, without_key
from app.help.palette import Command
from app.history.store import ConversationRow
from app.language import tr
from app.library.choice import is_there, recent_label
from app.settings import RecentModel


def action_commands(actions: Mapping[str, QAction]) -> list[Command]:
    """One command for each action of the table, as it stands now."""
    return [
        Command(
            without_key(actions[spec.name].text()),
            without_key(tr(spec.menu)),
            actions[spec.name].trigger,
            actions[spec.name].shortcut().toString(QKeySequence.SequenceFormat.NativeText),
            actions[spec.name].isEnabled(),
        )
        for spec in ACTIONS
        if spec.name and spec.name != "palette" and spec.name in actions
    ]


def recent_commands(recent: Sequence[RecentModel], load: Callable[[Path, Path | None], object]) -> list[Command]:
    """One command for each model that was opened before."""

    def opener(model: RecentModel) -> Callable[[], object]:
        return lambda: load(Path(model.path), Path(model.sidecar) if model.sidecar else None)

    group = tr("Recent model")
    return [Command(tr("Open {model}", model=recent_label(m)), group, opener(m), "", is_there(m)) for m in recent]


def chat_commands(chats: Sequence[ConversationRow], show: Callable[[int], object]) -> list[Command]:
    """One command for each conversation."""

    def opener(chat: ConversationRow) -> Callable[[], object]:
        return lambda: show(chat.id)

    group = tr("Conversation")
    return [Command(chat.title, group, opener(chat)) for chat in chats]
