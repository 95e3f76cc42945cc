"""The conversations, and the one that is open: what is shown of it, and what the model reads of it. Knows no widget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.chat.cells import Entry, Note, UserMessage
from app.chat.transcript_model import ending_notes
from app.history.others import OtherTexts
from app.history.recorder import Recorder
from app.history.schema import HistoryError
from app.history.store import Attachment, ConversationRow, Found, MessageRow, Store
from app.history.tree import MessageTree
from app.language import mark, tr

if TYPE_CHECKING:
    from engine import Message

INTERRUPTED = mark("The program ended while this was being said.")
_OPEN, _UNSENT, _SYSTEM = "open", "unsent", "system"


class Chats(QObject):
    """All conversations of one history file. A new one is written down with its first message."""

    listed = Signal()
    """Titles, order or number of the conversations changed."""
    opened = Signal()
    """Another conversation is open, or a new one."""
    branched = Signal()
    """Another path of the open conversation is shown."""
    problem = Signal(str)
    """Why something could not be written down; what is shown goes on all the same."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.current: int | None = None
        self.tree = MessageTree()
        self._files: dict[int, tuple[Attachment, ...]] = {}
        self._entries: dict[int, list[Entry]] = {}
        self._unsent_problem = ""

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Go on without what cannot be written down, and tell of it."""
        try:
            yield
        except HistoryError as error:
            self.problem.emit(str(error))

    # Conversations

    def start(self) -> None:
        """Make whole what a killed program left, and open the conversation that was open last."""
        with self._telling():
            self.store.recover()
            self.store.purge()
        last = self.store.remembered(_OPEN)
        self._show(int(last) if last.isdigit() and self.store.conversation(int(last)) else None)

    def rows(self) -> list[ConversationRow]:
        """All conversations, the pinned ones first, then the newest."""
        return self.store.conversations()

    def search(self, text: str) -> list[Found]:
        """The conversations in which all these words are."""
        return self.store.search(text)

    def open(self, conversation: int) -> None:
        """Show a conversation where it was left."""
        if conversation != self.current and self.store.conversation(conversation) is not None:
            self._show(conversation)

    def new(self) -> None:
        """Show an empty conversation; it keeps the system prompt of the present one."""
        with self._telling():
            self.store.remember(_SYSTEM, self.system)
        self._show(None)

    def rename(self, conversation: int, title: str) -> None:
        with self._telling():
            self.store.rename(conversation, title)
        self.listed.emit()

    def pin(self, conversation: int, pinned: bool) -> None:
        with self._telling():
            self.store.pin(conversation, pinned)
        self.listed.emit()

    def delete(self, conversation: int) -> bool:
        """Put a conversation out of sight; `restore` undoes it. False if that failed."""
        deleted = False
        with self._telling():
            self.store.delete(conversation)
            deleted = True
        if deleted and conversation == self.current:
            self._show(None)
        self.listed.emit()
        return deleted

    def restore(self, conversation: int) -> None:
        with self._telling():
            self.store.restore(conversation)
        self.listed.emit()
        self.open(conversation)

    @property
    def title(self) -> str:
        row = self.store.conversation(self.current) if self.current is not None else None
        return row.title if row else tr("New chat")

    @property
    def system(self) -> str:
        """The open conversation's system prompt."""
        return self.store.remembered(_SYSTEM) if self.current is None else self.store.system(self.current)

    def set_system(self, text: str) -> bool:
        """False if it could not be written down."""
        try:
            if self.current is None:
                self.store.remember(_SYSTEM, text)
            else:
                self.store.set_system(self.current, text)
        except HistoryError as error:
            self.problem.emit(str(error))
            return False
        return True

    @property
    def unsent(self) -> str:
        """What was being written in the open conversation."""
        return self.store.remembered(_UNSENT) if self.current is None else self.store.unsent(self.current)

    def keep_unsent(self, text: str) -> None:
        """Write down what is being written; that it fails is told once, not at every key."""
        try:
            if text == self.unsent:
                return
            if self.current is None:
                self.store.remember(_UNSENT, text)
            else:
                self.store.set_unsent(self.current, text)
            self._unsent_problem = ""
        except HistoryError as error:
            if str(error) != self._unsent_problem:
                self._unsent_problem = str(error)
                self.problem.emit(self._unsent_problem)

    # The open conversation

    def say(self, text: str, attachments: Sequence[Attachment] = (), *, after: int | None) -> MessageRow:
        """What the person says after a message (None: at the beginning), as a branch if something stands there.

        Raises HistoryError, and then nothing has been said.
        """
        with self.store.transaction():
            current = self.current
            if current is None:
                system = self.system
                self.store.remember(_UNSENT, "")
                current = self.store.create(system=system)
                self.store.remember(_OPEN, str(current))
            row = self.store.add_user(current, after, text, attachments)
        self.current = current
        self.tree.add(row)
        self._files[row.id] = tuple(attachments)
        self.listed.emit()
        return row

    def begin_reply(self, prompt: int, model: str) -> MessageRow:
        """A reply to a message begins, as a branch if there is one already. Raises HistoryError."""
        assert self.current is not None
        row = self.store.add_reply(self.current, prompt, model)
        self.tree.add(row)
        return row

    def recorder(self, message: int) -> Recorder:
        """What writes a reply down, for the engine's thread."""
        return Recorder(self.store.path, message)

    def others(self) -> OtherTexts:
        """What reads the other conversations, for the engine's thread."""
        return OtherTexts(self.store.path, self.current)

    def refresh(self, message: int) -> None:
        """Take over what was recorded of a reply."""
        self._entries.pop(message, None)
        row = self.store.message(message)
        if row is not None and message in self.tree:
            self.tree.replace(row)

    def show_branch(self, message: int, step: int) -> bool:
        """Show the alternative before or after a message; false if there is none."""
        if self.current is None or not self.tree.show_branch(message, step):
            return False
        self._keep_leaf()
        self.branched.emit()
        return True

    def go_back_to(self, message: int | None) -> None:
        """Let the path end with a message, to go on from there."""
        self.tree.show_to(message)
        self.branched.emit()

    def delete_message(self, message: int) -> Callable[[], None] | None:
        """Put a message and what follows it out of sight; returns what undoes it, or None if that failed."""
        conversation, leaf = self.current, self.tree.leaf
        assert conversation is not None
        try:
            self.store.delete_message(message)
        except HistoryError as error:
            self.problem.emit(str(error))
            return None
        self.tree.remove(message)
        self._keep_leaf()
        self.branched.emit()

        def undo() -> None:
            with self._telling(), self.store.transaction():
                self.store.restore_message(message)
                self.store.set_leaf(conversation, leaf)
            self._show(conversation)

        return undo

    def files(self, message: int) -> tuple[Attachment, ...]:
        """What was attached to a message."""
        if message not in self._files:
            self._files[message] = self.store.attachments(message)
        return self._files[message]

    def messages(self, until: int) -> tuple[Message, ...]:
        """What the model gets to read to answer a message. A prompt that failed without a word is left out."""
        from engine import Message  # when something is said, a model has long been loaded

        way = self.tree.way_to(until)
        said = [Message("system", self.system)] if self.system.strip() else []
        for row, following in zip(way, [*way[1:], None], strict=True):
            if row.role == "assistant" and row.content:
                said.append(Message("assistant", row.content))
            elif row.role == "user" and (following is None or following.content):
                said.append(user_message(row.content, self.files(row.id)))
        return tuple(said)

    def entries(self) -> list[Entry]:
        """The path as the transcript shows it."""
        return [entry for row in self.tree.path for entry in self._entries_of(row)]

    # Inside

    def _show(self, conversation: int | None) -> None:
        self.current = conversation
        self._entries.clear()
        rows = self.store.messages(conversation) if conversation is not None else []
        self.tree = MessageTree(rows, self.store.leaf(conversation) if conversation is not None else None)
        having = self.store.with_attachments(conversation) if conversation is not None else set()
        self._files = {row.id: () for row in rows if row.id not in having}
        with self._telling():
            self.store.remember(_OPEN, str(conversation or ""))
        self.opened.emit()

    def _keep_leaf(self) -> None:
        if self.current is not None:
            with self._telling():
                self.store.set_leaf(self.current, self.tree.leaf)

    def _entries_of(self, row: MessageRow) -> list[Entry]:
        if row.id not in self._entries:
            self._entries[row.id] = self._make_entries(row)
        return self._entries[row.id]

    def _make_entries(self, row: MessageRow) -> list[Entry]:
        if row.role == "user":
            return [UserMessage(row.content, row.id, self.files(row.id))]
        reply = self.store.rounds.reply(row.id)
        reply.message = row.id
        ending = self.store.rounds.ending(row.id)
        if row.state == "interrupted":
            return [reply, Note(tr(INTERRUPTED))]
        return [reply, *(ending_notes(ending) if ending is not None else ())]


def user_message(text: str, files: Sequence[Attachment]) -> Message:
    """What the person said as the engine gets it: text files stand before the words, pictures go beside them."""
    from engine import Message, Picture

    parts = [quoted(file) for file in files if file.kind == "text"]
    pictures = tuple(Picture(f.data, f.name, f.longest or None) for f in files if f.kind == "picture")
    return Message("user", "\n\n".join([*parts, text]).strip(), pictures)


def quoted(file: Attachment) -> str:
    """A text file inside a message, fenced so that nothing in it ends the fence."""
    text = file.data.decode("utf-8", "replace").rstrip("\n")
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{file.name}:\n{fence}\n{text}\n{fence}"
