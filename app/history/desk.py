"""Brings the history into the window: the sidebar, what can be done with a message, undoing, exporting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction, QGuiApplication

from app.chat.composer import Composer
from app.chat.controller import ChatController
from app.chat.transcript_view import TranscriptView
from app.history.message_tools import MessageTools
from app.history.sidebar import Sidebar
from app.language import tr
from app.message_bar import MessageBar
from app.theme import Theme

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.history.store import MessageRow

OF_MESSAGES = (
    "message_edit",
    "message_again",
    "go_on",
    "message_copy",
    "message_delete",
    "branch_before",
    "branch_after",
)
"""The actions that mean a message of the chat."""


class HistoryDesk(QObject):
    """Connects the conversations' view model with what shows it."""

    def __init__(
        self,
        window: QWidget,
        controller: ChatController,
        view: TranscriptView,
        composer: Composer,
        bar: MessageBar,
        theme: Theme,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._chat = controller
        self.chats = controller.chats
        self._view = view
        self._composer = composer
        self._bar = bar
        self._undo: Callable[[], None] | None = None
        self.sidebar = Sidebar(self.chats, theme)
        self.sidebar.opened.connect(self.open)
        self.sidebar.delete_wanted.connect(self.delete)
        self.tools: MessageTools | None = None
        self._actions: Mapping[str, QAction] = {}
        self._behind = False
        """Whether a run stands in front of the chat: what nobody sees is not edited or deleted."""
        controller.changed.connect(self.refresh)
        controller.user_said.connect(self._on_user_said)
        controller.reply_began.connect(view.model.begin_reply)
        controller.reply_dropped.connect(view.model.drop_last_reply)
        controller.reply_went_on.connect(view.model.continue_reply)
        controller.shown.connect(self._on_shown)
        controller.not_kept.connect(bar.show_message)
        self.chats.problem.connect(bar.show_message)
        composer.edited.connect(self._on_edited)
        self.chats.opened.connect(self._on_opened)

    def slots(self) -> dict[str, Callable[[], object]]:
        """What the window's actions do."""
        return {
            "search_chats": self.search,
            "rename_chat": self.rename,
            "delete_chat": lambda: self.chats.current and self.delete(self.chats.current),
            "undo_delete": self.undo,
            "export_chat": self.export,
            "message_edit": self.edit,
            "message_again": self.regenerate,
            "go_on": self._chat.go_on,
            "answer_now": self._chat.answer_now,
            "branch_before": lambda: self.show_branch(-1),
            "branch_after": lambda: self.show_branch(+1),
            "message_copy": self.copy,
            "message_delete": self.delete_message,
        }

    def follow(self, actions: Mapping[str, QAction]) -> None:
        """Enable these actions when they can be done, and put the messages' ones onto the messages."""
        self._actions = actions
        self.tools = MessageTools(self._view, self.chats, actions)
        self.tools.targeted.connect(self.refresh)
        self.refresh()

    @Slot(object)
    def _on_user_said(self, row: MessageRow) -> None:
        self._view.model.add_user(row.content, row.id, self.chats.files(row.id))

    @Slot()
    def _on_shown(self) -> None:
        """Another path or another conversation is open."""
        self._view.model.show(self.chats.entries())

    @Slot()
    def _on_opened(self) -> None:
        unsent = self.chats.unsent
        self._composer.end_edit()
        self._composer.set_text(unsent)

    def apply_theme(self, theme: Theme) -> None:
        self.sidebar.apply_theme(theme)

    @Slot(bool)
    def stand_behind(self, behind: bool) -> None:
        """A run came in front of the chat, or went."""
        self._behind = behind
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Enable what can be done now."""
        if not self._actions:
            return
        chat, quiet = self._chat, not self._chat.replying
        can_ask = not chat.why_not_regenerate()
        reply, prompt = self.reply(), self.prompt()
        for name, possible in {
            "rename_chat": self.chats.current is not None,
            "delete_chat": self.chats.current is not None,
            "export_chat": not chat.empty,
            "undo_delete": self._undo is not None,
            "message_edit": can_ask and prompt is not None,
            "message_again": can_ask and reply is not None,
            "go_on": not chat.why_not_continue(),
            "answer_now": chat.thinking and not chat.answer_wanted,
            "message_copy": self.message() is not None,
            "message_delete": quiet and self.message() is not None,
            "branch_before": quiet and self._can_step(-1),
            "branch_after": quiet and self._can_step(+1),
        }.items():
            self._actions[name].setEnabled(possible and not (self._behind and name in OF_MESSAGES))

    # Which message is meant

    def message(self) -> MessageRow | None:
        """The message under the pointer, else the one with the cursor, else the last."""
        tree, at = self.chats.tree, self._view.cursor_cell
        if self.tools is not None and self.tools.target in tree and self.tools.isVisible():
            return tree[self.tools.target]
        if at is not None and at[0] < len(self._view.model.entries):
            marked = self._view.model.entries[at[0]].message
            if marked in tree:
                return tree[marked]
        return tree[tree.leaf] if tree.leaf is not None else None

    def reply(self) -> MessageRow | None:
        """The reply that is meant, or the one before it."""
        return self._last_of("assistant")

    def prompt(self) -> MessageRow | None:
        """The person's message that is meant, or the one before it."""
        return self._last_of("user")

    def _last_of(self, role: str) -> MessageRow | None:
        meant = self.message()
        way = self.chats.tree.way_to(meant.id) if meant is not None else []
        return next((row for row in reversed(way) if row.role == role), None)

    def _forked(self) -> MessageRow | None:
        """The message that is meant if it has branches, else the nearest before it that has."""
        meant = self.message()
        way = self.chats.tree.way_to(meant.id) if meant is not None else []
        return next((row for row in reversed(way) if len(self.chats.tree.branches(row.id)) > 1), None)

    def _can_step(self, step: int) -> bool:
        row = self._forked()
        if row is None:
            return False
        branches = self.chats.tree.branches(row.id)
        return 0 <= branches.index(row.id) + step < len(branches)

    # What can be done with it

    @Slot()
    def edit(self) -> None:
        """Put a message into the composer; sending it again makes a branch."""
        if (row := self.prompt()) is not None and not self._chat.why_not_regenerate():
            self._composer.begin_edit(row.id, row.content)

    @Slot(int, str)
    def _on_edited(self, message: int, text: str) -> None:
        """Ask again with another text, or go on editing it if that cannot be done now."""
        why = self._chat.why_not_regenerate()
        if not self._chat.edit(message, text):
            self._composer.begin_edit(message, text)
            if why:
                self._bar.show_message(why, "info")

    @Slot()
    def regenerate(self) -> None:
        if (row := self.reply()) is not None:
            self._chat.regenerate(row.id)

    def show_branch(self, step: int) -> None:
        if (row := self._forked()) is not None:
            self._chat.show_branch(row.id, step)

    @Slot()
    def copy(self) -> None:
        """Copy a whole message."""
        if (row := self.message()) is not None:
            QGuiApplication.clipboard().setText(row.content)

    @Slot()
    def delete_message(self) -> None:
        """Put a message and what follows it out of sight."""
        if (row := self.message()) is not None and (undo := self._chat.delete_message(row.id)) is not None:
            self._offer_undo(tr("The message and what followed it are deleted."), undo)

    # Conversations

    @Slot(int)
    def open(self, conversation: int) -> None:
        """Show a conversation, and go on writing in it."""
        self._bar.dismiss()
        self.chats.open(conversation)
        self._composer.edit.setFocus()

    @Slot(int)
    def delete(self, conversation: int) -> None:
        """Put a conversation out of sight."""
        row = self.chats.store.conversation(conversation)
        if row is not None and self.chats.delete(conversation):
            sentence = tr("“{title}” is deleted.", title=row.title)
            self._offer_undo(sentence, lambda: self.chats.restore(conversation))

    @Slot()
    def undo(self) -> None:
        """Bring back what was deleted last."""
        undo, self._undo = self._undo, None
        if undo is not None:
            self._bar.dismiss()
            undo()
        self.refresh()

    def _offer_undo(self, sentence: str, undo: Callable[[], None]) -> None:
        self._undo = undo
        self._bar.show_message(sentence, "info", (tr("Undo"), self.undo))
        self.refresh()

    @Slot()
    def search(self) -> None:
        """Go to the search field."""
        dock = self.sidebar.parentWidget()
        if dock is not None:
            dock.show()
        self.sidebar.field.setFocus()
        self.sidebar.field.selectAll()

    @Slot()
    def rename(self) -> None:
        """Write another title: for the chosen conversation in the list, else for the open one."""
        chosen = self.sidebar.list
        if chosen.hasFocus() and chosen.currentIndex().isValid():
            chosen.edit(chosen.currentIndex())
            return
        dock = self.sidebar.parentWidget()
        if dock is not None:
            dock.show()
        self.sidebar.rename_open()

    @Slot()
    def export(self) -> None:
        """Write the conversation to a file of the person's choice."""
        from app.history.export_dialog import ask_and_export

        def tell(sentence: str) -> None:
            self._bar.show_message(sentence, "info")

        if problem := ask_and_export(self._window, self.chats, tell):
            self._bar.show_message(problem)
