"""A conversation's messages as a tree: every edit and every new reply is a branch, one path is shown. No Qt."""

from __future__ import annotations

from collections.abc import Iterable

from app.history.store import MessageRow


class MessageTree:
    """Messages by id, and the path that is shown."""

    def __init__(self, messages: Iterable[MessageRow] = (), leaf: int | None = None) -> None:
        self._messages: dict[int, MessageRow] = {}
        self._after: dict[int | None, list[int]] = {}
        self._leaf: int | None = None
        for message in messages:
            self._put(message)
        if self._messages:
            known = leaf if leaf is not None and self._reaches_root(leaf) else self._newest_root()
            self._leaf = self._end_of(known) if known is not None else None

    def __getitem__(self, message: int) -> MessageRow:
        return self._messages[message]

    def __contains__(self, message: int) -> bool:
        return message in self._messages

    @property
    def leaf(self) -> int | None:
        """The last message of the path."""
        return self._leaf

    @property
    def path(self) -> list[MessageRow]:
        """The messages that are shown, first to last."""
        return self.way_to(self._leaf)

    def way_to(self, message: int | None) -> list[MessageRow]:
        """The messages from the beginning up to this one."""
        way = []
        while message is not None:
            way.append(self._messages[message])
            message = way[-1].parent
        return way[::-1]

    def add(self, message: MessageRow) -> None:
        """Add a message, and show the path to it."""
        self._put(message)
        self._leaf = message.id

    def show_to(self, message: int | None) -> None:
        """Let the path end with a message (None: before the first)."""
        self._leaf = message

    def replace(self, message: MessageRow) -> None:
        """Take over a newer state of a message."""
        self._messages[message.id] = message

    def remove(self, message: int) -> None:
        """Take a message and all that follows it away; if it was shown, a sibling is, or the path ends before it."""
        parent, shown = self._messages[message].parent, self._messages[message] in self.path
        branches = self._after[parent]
        at = branches.index(message)
        branches.remove(message)
        self._forget(message)
        if shown:
            nearest = branches[min(at, len(branches) - 1)] if branches else parent
            self._leaf = self._end_of(nearest) if nearest is not None and branches else nearest

    def branches(self, message: int) -> list[int]:
        """The alternatives at a message's place, itself included, oldest first."""
        return self._after[self._messages[message].parent]

    def show_branch(self, message: int, step: int) -> bool:
        """Show the alternative `step` places after (before, if negative) this message; false if there is none."""
        branches = self.branches(message)
        at = branches.index(message) + step
        if not 0 <= at < len(branches):
            return False
        self._leaf = self._end_of(branches[at])
        return True

    def _put(self, message: MessageRow) -> None:
        self._messages[message.id] = message
        self._after.setdefault(message.parent, []).append(message.id)

    def _forget(self, message: int) -> None:
        waiting = [message]
        while waiting:
            gone = waiting.pop()
            waiting += self._after.pop(gone, [])
            del self._messages[gone]

    def _end_of(self, message: int) -> int:
        """The newest leaf below a message, by the newest branch at each fork."""
        while self._after.get(message):
            message = self._after[message][-1]
        return message

    def _newest_root(self) -> int | None:
        roots = self._after.get(None, [])
        return roots[-1] if roots else None

    def _reaches_root(self, message: int | None) -> bool:
        while message is not None:
            if message not in self._messages:
                return False
            message = self._messages[message].parent
        return True
