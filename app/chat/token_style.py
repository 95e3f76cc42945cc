"""How each kind of token looks: a tint, and a second cue that needs no colour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QColor

from app.chat.cells import CellKind
from app.language import mark
from app.theme import StateName, Theme, mix


class Cue(Enum):
    """The second cue, told apart by shape alone."""

    NONE = mark("no mark")
    SOLID = mark("solid underline")
    DOTTED = mark("dotted underline")
    NOTCH = mark("folded corner")
    PLUS = mark("small plus")
    STRIKE = mark("struck through")
    DOTTED_STRIKE = mark("struck through with dots")


@dataclass(frozen=True, slots=True)
class TokenStyle:
    """What a painter needs for one kind of token."""

    tint: QColor | None
    """Ground behind the token."""
    mark: QColor
    """Colour of the cue."""
    text: QColor
    cue: Cue


SHORT_WORDS = {
    CellKind.PLAIN: mark("model"),
    CellKind.MTP: mark("MTP draft, accepted"),
    CellKind.NGRAM: mark("n-gram draft, accepted"),
    CellKind.CORRECTION: mark("correction"),
    CellKind.BONUS: mark("bonus"),
    CellKind.REFUSED: mark("refused"),
    CellKind.UNUSED: mark("unused"),
}
"""Every kind in the legend's words, in English."""

WORDS = {
    CellKind.PLAIN: mark("the model's own, no draft stood here"),
    CellKind.MTP: mark("accepted draft of the MTP layer"),
    CellKind.NGRAM: mark("accepted draft copied from earlier text"),
    CellKind.CORRECTION: mark("the model's own, in place of a refused draft"),
    CellKind.BONUS: mark("the model's own, gained after a fully accepted run"),
    CellKind.REFUSED: mark("draft that the model refused"),
    CellKind.UNUSED: mark("draft that was never tested, after a refusal or the end"),
}
"""Every kind in a sentence's words, in English: token card, tooltips and screen reader say the same."""

CUES = {
    CellKind.PLAIN: Cue.NONE,
    CellKind.MTP: Cue.SOLID,
    CellKind.NGRAM: Cue.DOTTED,
    CellKind.CORRECTION: Cue.NOTCH,
    CellKind.BONUS: Cue.PLUS,
    CellKind.REFUSED: Cue.STRIKE,
    CellKind.UNUSED: Cue.DOTTED_STRIKE,
}


_DIMMED_TINT = 0.5
_DIMMED_TEXT = 0.35


def token_styles(theme: Theme, *, dimmed: bool = False) -> dict[CellKind, TokenStyle]:
    """The style of every kind of token in a theme; `dimmed` for the thinking before an answer.

    What is dimmed has paler grounds as well as paler text, so that it stays readable.
    """
    text = mix(theme.text, theme.muted, _DIMMED_TEXT) if dimmed else theme.text

    def tint(state: StateName) -> str:
        return mix(theme.tint(state), theme.surface, _DIMMED_TINT) if dimmed else theme.tint(state)

    looks: dict[CellKind, tuple[str | None, str, str]] = {
        CellKind.PLAIN: (None, theme.plain, text),
        CellKind.MTP: (tint("accepted_mtp"), theme.accepted_mtp, text),
        CellKind.NGRAM: (tint("accepted_ngram"), theme.accepted_ngram, text),
        CellKind.CORRECTION: (tint("correction"), theme.correction, text),
        CellKind.BONUS: (None, theme.bonus, text),
        CellKind.REFUSED: (tint("refused"), theme.refused, text),
        CellKind.UNUSED: (None, theme.refused, theme.muted),
    }
    return {
        kind: TokenStyle(QColor(ground) if ground else None, QColor(mark), QColor(ink), CUES[kind])
        for kind, (ground, mark, ink) in looks.items()
    }
