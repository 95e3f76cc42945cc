"""Cuts what was said into pieces that are set on their own: only what is looked at is ever rendered. No widgets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from app.chat.cells import Entry, Note, Reply, UserMessage
from app.language import tr
from engine import find_tool_calls

PIECE_CHARACTERS = 3000
"""A piece ends at the first blank line outside a fence after this many characters."""
MOST_CHARACTERS = 12_000
"""A piece without such a line ends here all the same."""

Kind = Literal["user", "fold", "thinking", "answer", "call", "note", "error"]
MOST_CALL = 65_536
"""A tool call that is longer than this without an end is text."""
OPEN, CLOSE = "<tool_call>", "</tool_call>"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one message, all of one kind."""

    kind: Kind
    text: str
    entry: int
    opens: bool = False
    """Whether it is the first of its message."""


class Cutter:
    """Cuts text that grows at its end: finished pieces stay as they are."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._rest = ""

    def add(self, text: str) -> int:
        """Append text. Returns the first piece that changed."""
        first = len(self.pieces) - bool(self._rest)
        self._rest += text
        if first < len(self.pieces):
            self.pieces.pop()
        at = 0
        while (end := _end_of_piece(self._rest[at : at + MOST_CHARACTERS + 1])) is not None:
            self.pieces.append(self._rest[at : at + end])
            at += end
        self._rest = self._rest[at:]
        if self._rest:
            self.pieces.append(self._rest)
        return first


def _end_of_piece(text: str) -> int | None:
    """Where the first piece of a text ends for good; None while it may still grow."""
    if len(text) <= PIECE_CHARACTERS:
        return None
    at, fence = 0, ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
            fence = ""
        at += len(line)
        blank = not line.strip() and line.endswith("\n")
        if at >= PIECE_CHARACTERS and blank and not fence:
            return at if at < len(text) else None
        if at >= MOST_CHARACTERS:
            return min(at, MOST_CHARACTERS) if len(text) > MOST_CHARACTERS else None
    return None


class AnswerCutter:
    """Cuts an answer that grows; a tool call is a piece of its own once it is whole and makes sense."""

    def __init__(self) -> None:
        self._done: list[tuple[Kind, str]] = []
        self._cutter = Cutter()
        self._held = ""  # what may be, or become, a tool call

    @property
    def pieces(self) -> list[tuple[Kind, str]]:
        """Kind and text of each piece; a call that is not whole yet is text."""
        open_end = list(self._cutter.pieces)
        if self._held and open_end:
            open_end[-1] += self._held
        elif self._held:
            open_end = [self._held]
        return [*self._done, *(("answer", text) for text in open_end)]

    def add(self, text: str) -> None:
        """Append text."""
        self._held += text
        while self._held:
            start = _beginning(self._held, OPEN)
            if start:
                self._cutter.add(self._held[:start])
                self._held = self._held[start:]
            end = self._held.find(CLOSE)
            if not self._held.startswith(OPEN) or (end < 0 and len(self._held) <= MOST_CALL):
                return
            self._take(end + len(CLOSE) if end >= 0 else len(self._held))

    def _take(self, end: int) -> None:
        """The first `end` characters of what is held are a call, or look like one."""
        found, self._held = self._held[:end], self._held[end:]
        if find_tool_calls(found):
            self._done += [("answer", piece) for piece in self._cutter.pieces]
            self._done.append(("call", found))
            self._cutter = Cutter()
        else:
            self._cutter.add(found)


def _beginning(text: str, tag: str) -> int:
    """Where `tag` stands in a text, or where one may begin that the end cuts off; else the text's length."""
    at = text.find(tag)
    if at >= 0:
        return at
    return next((i for i in range(max(0, len(text) - len(tag)), len(text)) if tag.startswith(text[i:])), len(text))


class ReplyPieces:
    """The pieces of a reply, kept up to date while it grows."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._seen = 0
        self.thinking, self.answer = Cutter(), AnswerCutter()

    def catch_up(self) -> None:
        """Take over the cells that are new."""
        first, self._seen = self._seen, len(self._reply)
        thought, said = self._reply.said(first)
        if text := _without_tags(thought, start=not self.thinking.pieces):
            self.thinking.add(text)
        if text := _without_tags(said, start=not self.answer.pieces):
            self.answer.add(text)


def _without_tags(text: str, *, start: bool) -> str:
    text = text.replace("<think>", "").replace("</think>", "")
    return text.lstrip("\n") if start else text


def thinking_seconds(reply: Reply, most: int = 4000) -> float | None:
    """How long the model thought; None if that would take long to find out, or nothing tells."""
    if len(reply.rounds) > most:
        return None
    return sum(r.draft_s + r.verify_s + r.disk_wait_s for r in reply.rounds if r.phase == "think") or None


def fold_line(reply: Reply, unfolded: bool) -> str:
    """The line that stands for the thinking."""
    seconds = thinking_seconds(reply)
    still = reply.active and bool(len(reply)) and reply.thinking(len(reply) - 1)
    if still:
        words = tr("Thinking")
    elif seconds is None:
        words = tr("Thought")
    else:
        words = tr("Thought for {seconds:.1f} s", seconds=seconds)
    return f"{'▾' if unfolded else '▸'} {words}"


def pieces_of(entry: Entry, index: int, cut: ReplyPieces | None, unfolded: bool) -> list[Piece]:
    """The pieces of an entry as they are to be shown."""
    if isinstance(entry, UserMessage):
        return [Piece("user", entry.said, index, opens=True)]
    if isinstance(entry, Note):
        if entry.tone == "call":
            return []  # it stands in its place in the answer
        return [Piece("error" if entry.tone == "error" else "note", entry.text, index)]
    assert isinstance(entry, Reply)
    assert cut is not None
    cut.catch_up()
    pieces: list[Piece] = []
    if any(text.strip() for text in cut.thinking.pieces):
        pieces.append(Piece("fold", fold_line(entry, unfolded), index, opens=True))
        pieces += [Piece("thinking", text, index) for text in cut.thinking.pieces if unfolded]
    for kind, text in cut.answer.pieces:
        if text.strip():
            pieces.append(Piece(kind, text, index, opens=not pieces))
    return pieces
