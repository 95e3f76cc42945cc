"""Cuts what was said into pieces that are set on their own, so that only what is looked at is ever rendered. No Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from app.chat.cells import Entry, Note, Reply, UserMessage

PIECE_CHARACTERS = 3000
"""A piece ends at the first blank line outside a fence after this many characters."""
MOST_CHARACTERS = 12_000
"""A piece without such a line ends here all the same."""

Kind = Literal["user", "fold", "thinking", "answer", "note", "error"]
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


class ReplyPieces:
    """The pieces of a reply, kept up to date while it grows."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._seen = 0
        self.thinking, self.answer = Cutter(), Cutter()

    def catch_up(self) -> None:
        """Take over the cells that are new."""
        first, self._seen = self._seen, len(self._reply)
        for cutter, text in zip((self.thinking, self.answer), self._reply.said(first), strict=True):
            if text := _without_tags(text, start=not cutter.pieces):
                cutter.add(text)


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
    words = "Thinking" if still else "Thought" if seconds is None else f"Thought for {seconds:.1f} s"
    return f"{'▾' if unfolded else '▸'} {words}"


def pieces_of(entry: Entry, index: int, cut: ReplyPieces | None, unfolded: bool) -> list[Piece]:
    """The pieces of an entry as they are to be shown."""
    if isinstance(entry, UserMessage):
        return [Piece("user", entry.said, index, opens=True)]
    if isinstance(entry, Note):
        return [Piece("error" if entry.tone == "error" else "note", entry.text, index)]
    assert isinstance(entry, Reply)
    assert cut is not None
    cut.catch_up()
    pieces: list[Piece] = []
    if any(text.strip() for text in cut.thinking.pieces):
        pieces.append(Piece("fold", fold_line(entry, unfolded), index, opens=True))
        pieces += [Piece("thinking", text, index) for text in cut.thinking.pieces if unfolded]
    pieces += [Piece("answer", text, index, opens=not pieces and not at) for at, text in enumerate(cut.answer.pieces)]
    return pieces
