"""Entries of a transcript and the cells in them: one cell per token, kept in columns.

A reply only ever grows. Refused and unused drafts are cells too ("ghosts"), standing where they were proposed; text
and selections leave them out. A `Cell` with everything known about a token is made when somebody asks for it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress
from operator import and_, sub
from typing import Literal, Protocol

from app.language import tr, trn
from engine import Alternative, CommittedToken, DraftedToken, Round, Stats

Tone = Literal["info", "error", "call"]


class CellKind(IntEnum):
    """What became of a token; also what decides how it looks."""

    PLAIN = 0
    """The model's own, where no draft stood."""
    MTP = 1
    """An accepted draft of the MTP layer."""
    NGRAM = 2
    """An accepted draft copied from earlier text."""
    CORRECTION = 3
    """The model's own, in place of a refused draft."""
    BONUS = 4
    """The model's own, after a fully accepted run."""
    REFUSED = 5
    """A draft that the model did not take."""
    UNUSED = 6
    """A draft that was never tested, since one before it was refused or the reply ended."""

    @property
    def ghost(self) -> bool:
        """Not part of the reply."""
        return self >= 5


KINDS = tuple(CellKind)
"""By number: looking up is much faster than making an enum member."""

MARKS = {
    CellKind.PLAIN: "",
    CellKind.MTP: "[m]",
    CellKind.NGRAM: "[n]",
    CellKind.CORRECTION: "[c]",
    CellKind.BONUS: "[b]",
    CellKind.REFUSED: "[x]",
    CellKind.UNUSED: "[x]",
}
"""Marks after each token in the text form of a reply."""

_MTP, _NGRAM, _REFUSED, _UNUSED = (int(k) for k in (CellKind.MTP, CellKind.NGRAM, CellKind.REFUSED, CellKind.UNUSED))
_BY_ORIGIN = {
    "model": int(CellKind.PLAIN),
    "correction": int(CellKind.CORRECTION),
    "bonus": int(CellKind.BONUS),
    "accepted": int(CellKind.MTP),
}
_SPOKEN = bytes(int(kind < _REFUSED) for kind in range(256))
"""1 for the kinds that are part of the reply, 0 for ghosts."""
_WORDS = re.compile(r"\n|[^\S\n]*[^\s]+|[^\S\n]+")


class AttachedFile(Protocol):
    """A file that goes with a message."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...


class Entry:
    """A stretch of text that consists of cells: `texts`, one string per cell, append-only."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.message = 0
        """Its message in the history; 0 if it is of none."""

    def __len__(self) -> int:
        return len(self.texts)

    def kind(self, cell: int) -> CellKind:  # noqa: ARG002 - a reply's cells differ
        """What became of this cell's token."""
        return CellKind.PLAIN

    @property
    def text(self) -> str:
        """The text as a person reads it."""
        return "".join(self.texts)


class UserMessage(Entry):
    """What the person wrote, and below it the names of the files that go with it; its cells are words."""

    def __init__(self, text: str, message: int = 0, files: Sequence[AttachedFile] = ()) -> None:
        super().__init__()
        self.message = message
        self.said = text
        self.files = tuple(files)
        self.texts = _WORDS.findall("\n".join([*filter(None, [text]), *(f"[{file.name}]" for file in files)]))


class Note(Entry):
    """Lines of the program below a reply: which tools it calls, how it ended, what it cost, why nothing was drafted."""

    def __init__(self, text: str, tone: Tone = "info", *, passing: bool = False) -> None:
        super().__init__()
        self.texts = _WORDS.findall(text)
        self.tone: Tone = tone
        self.passing = passing
        """Shown only until something newer is known."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One token of a reply, or one ghost, with everything that its round says about it."""

    index: int
    """Index among the cells of its reply."""
    kind: CellKind
    token: int
    text: str
    position: int
    """Position in the context: where it stands, or for a ghost would have stood."""
    round: Round
    place: int
    """Index in the round: among the drafts for a draft, else among the committed tokens."""
    draft: DraftedToken | None
    """The draft that stood here: this token itself, or the one that it replaced."""
    committed: CommittedToken | None
    """None for a ghost."""

    @property
    def model_probability(self) -> float | None:
        """The model's probability of this token at this place, where known."""
        if self.committed is not None and self.committed.model_probability is not None:
            return self.committed.model_probability
        own = self.draft is not None and self.draft.token == self.token
        return self.draft.model_probability if own and self.draft is not None else None

    @property
    def draft_probability(self) -> float | None:
        """The drafter's probability of this token, where it was a draft and the drafter has one."""
        own = self.draft is not None and self.draft.token == self.token
        return self.draft.draft_probability if own and self.draft is not None else None

    @property
    def model_alternatives(self) -> tuple[Alternative, ...]:
        """The model's most likely tokens at this place."""
        return self.committed.alternatives if self.committed is not None else ()

    @property
    def draft_alternatives(self) -> tuple[Alternative, ...]:
        """The drafter's most likely tokens at this place."""
        return self.draft.alternatives if self.draft is not None else ()


class Reply(Entry):
    """A reply of the model, grown round by round."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[Round] = []
        self.active = True
        self.stats: Stats | None = None
        self._kinds = bytearray()
        self._thinking = bytearray()
        self._round_of = array("L")
        self._place = array("H")

    def add_round(self, record: Round) -> None:
        """Append the cells of one round: accepted drafts, then ghosts, then what the model said itself."""
        self.rounds.append(record)
        taken = 0
        think = record.phase == "think"
        for token in record.committed:
            if token.origin != "accepted":
                break
            think = token.phase == "think"
            self._add(_NGRAM if token.source == "ngram" else _MTP, token.text, think, taken)
            taken += 1
        for place, draft in enumerate(record.drafts):
            if draft.verdict != "accepted":
                self._add(_REFUSED if draft.verdict == "rejected" else _UNUSED, draft.text, think, place)
        for place in range(taken, len(record.committed)):
            token = record.committed[place]
            self._add(_BY_ORIGIN[token.origin], token.text, token.phase == "think", place)
        self._round_of.extend([len(self.rounds) - 1] * (len(self.texts) - len(self._round_of)))

    def _add(self, kind: int, text: str, think: bool, place: int) -> None:
        self.texts.append(text)
        self._kinds.append(kind)
        self._thinking.append(think)
        self._place.append(place)

    def kind(self, cell: int) -> CellKind:
        return KINDS[self._kinds[cell]]

    def ghost(self, cell: int) -> bool:
        """Whether a cell is not part of the reply."""
        return self._kinds[cell] >= _REFUSED

    def kinds(self, first: int, last: int) -> bytes:
        """Kinds of the cells first…last-1."""
        return bytes(self._kinds[first:last])

    def thinking(self, cell: int) -> bool:
        """Whether this cell belongs to the thinking before the answer."""
        return bool(self._thinking[cell])

    def said(self, first: int = 0) -> tuple[str, str]:
        """What was thought, and what was answered, from a cell on: without ghosts, with the tags."""
        spoken = bytes(self._kinds[first:]).translate(_SPOKEN)
        thought = bytes(map(and_, spoken, self._thinking[first:]))
        answered = bytes(map(sub, spoken, thought))
        texts = self.texts[first:] if first else self.texts
        return "".join(compress(texts, thought)), "".join(compress(texts, answered))

    def phase_end(self, cell: int) -> int:
        """The first cell after `cell` whose phase is another one, or the number of cells."""
        end = self._thinking.find(not self._thinking[cell], cell)
        return len(self) if end < 0 else end

    def round_of(self, cell: int) -> int:
        """Index, among this reply's rounds, of the round that brought this cell."""
        return self._round_of[cell]

    def number_of(self, record: Round) -> int:
        """Index, among this reply's rounds, of a round, by its identity; -1 if it is not among them."""
        for index in (record.index, record.index - 1):  # with and without the prompt's own token as round 0
            if 0 <= index < len(self.rounds) and self.rounds[index] is record:
                return index
        return next((index for index, known in enumerate(self.rounds) if known is record), -1)

    def starts_round(self, cell: int) -> bool:
        """Whether this cell is the first of its round."""
        return cell == 0 or self._round_of[cell] != self._round_of[cell - 1]

    def cell(self, index: int) -> Cell:
        """Everything about one cell."""
        kind, place = self.kind(index), self._place[index]
        record = self.rounds[self._round_of[index]]
        draft = record.drafts[place] if place < len(record.drafts) else None
        if kind.ghost:
            assert draft is not None
            return Cell(index, kind, draft.token, draft.text, record.position + place, record, place, draft, None)
        token = record.committed[place]
        if kind in (CellKind.PLAIN, CellKind.BONUS):
            draft = None
        return Cell(index, kind, token.token, token.text, record.position + place, record, place, draft, token)

    def cells(self) -> Iterator[Cell]:
        """All cells, in order."""
        return (self.cell(i) for i in range(len(self)))

    @property
    def text(self) -> str:
        return "".join(t for t, k in zip(self.texts, self._kinds, strict=True) if k < CellKind.REFUSED)

    @property
    def tokens(self) -> int:
        """Tokens of the reply, ghosts not counted."""
        return len(self._kinds) - self._kinds.count(_REFUSED) - self._kinds.count(_UNUSED)

    def marked_text(self) -> str:
        """The text with a mark after each drafted or corrected token, and the refused drafts in brackets."""
        parts = []
        for text, value in zip(self.texts, self._kinds, strict=True):
            kind = CellKind(value)
            parts.append(f"\u27e8{text}\u27e9{MARKS[kind]}" if kind.ghost else f"{text}{MARKS[kind]}")
        return "".join(parts)


def summary(stats: Stats) -> str:
    """A finished reply in one line."""
    parts = [
        trn("{count} token", "{count} tokens", stats.emitted, count=_grouped(stats.emitted)),
        trn("{count} round", "{count} rounds", stats.rounds, count=_grouped(stats.rounds)),
    ]
    if stats.rounds:
        mean = stats.tokens_per_round or stats.emitted / stats.rounds
        parts.append(tr("{mean:.2f} tokens per round", mean=mean))
    if stats.tested:
        share = stats.acceptance if stats.acceptance is not None else stats.accepted / stats.tested
        parts.append(tr("{share:.0f} % of tested drafts accepted", share=100 * share))
    if stats.tokens_per_s:
        parts.append(tr("{speed:.1f} tokens/s", speed=stats.tokens_per_s))
    return " · ".join(parts)


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")


def plain_text(entries: Sequence[Entry], marks: bool = False) -> str:
    """The whole transcript as text, a line per speaker; with `marks`, each token's verdict too."""
    blocks = []
    for entry in entries:
        if isinstance(entry, Reply):
            blocks.append(tr("Model:") + "\n" + (entry.marked_text() if marks else entry.text))
        elif isinstance(entry, UserMessage):
            blocks.append(tr("You:") + "\n" + entry.text)
        else:
            blocks.append(f"({entry.text})")
    return "\n\n".join(blocks)
