"""How each kind of token looks: a tint, and a second cue that needs no colour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QColor

from app.chat.cells import CellKind
from app.theme import Theme


class Cue(Enum):
    """The second cue, told apart by shape alone."""

    NONE = "no mark"
    SOLID = "solid underline"
    DOTTED = "dotted underline"
    NOTCH = "folded corner"
    PLUS = "small plus"
    STRIKE = "struck through"
    DOTTED_STRIKE = "struck through with dots"


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
    CellKind.PLAIN: "model",
    CellKind.MTP: "MTP draft, accepted",
    CellKind.NGRAM: "n-gram draft, accepted",
    CellKind.CORRECTION: "correction",
    CellKind.BONUS: "bonus",
    CellKind.REFUSED: "refused",
    CellKind.UNUSED: "unused",
}
"""Every kind in the legend's words."""

WORDS = {
    CellKind.PLAIN: "the model's own, no draft stood here",
    CellKind.MTP: "accepted draft of the MTP layer",
    CellKind.NGRAM: "accepted draft copied from earlier text",
    CellKind.CORRECTION: "the model's own, in place of a refused draft",
    CellKind.BONUS: "the model's own, gained after a fully accepted run",
    CellKind.REFUSED: "draft that the model refused",
    CellKind.UNUSED: "draft that was never tested, after a refusal or the end",
}
"""Every kind in a sentence's words: token card, tooltips and screen reader say the same."""

CUES = {
    CellKind.PLAIN: Cue.NONE,
    CellKind.MTP: Cue.SOLID,
    CellKind.NGRAM: Cue.DOTTED,
    CellKind.CORRECTION: Cue.NOTCH,
    CellKind.BONUS: Cue.PLUS,
    CellKind.REFUSED: Cue.STRIKE,
    CellKind.UNUSED: Cue.DOTTED_STRIKE,
}


def token_styles(theme: Theme) -> dict[CellKind, TokenStyle]:
    """The style of every kind of token in a theme."""
    text, muted = QColor(theme.text), QColor(theme.muted)
    looks: dict[CellKind, tuple[str | None, str, QColor]] = {
        CellKind.PLAIN: (None, theme.plain, text),
        CellKind.MTP: (theme.tint("accepted_mtp"), theme.accepted_mtp, text),
        CellKind.NGRAM: (theme.tint("accepted_ngram"), theme.accepted_ngram, text),
        CellKind.CORRECTION: (theme.tint("correction"), theme.correction, text),
        CellKind.BONUS: (None, theme.bonus, text),
        CellKind.REFUSED: (theme.tint("refused"), theme.refused, text),
        CellKind.UNUSED: (None, theme.refused, muted),
    }
    return {
        kind: TokenStyle(QColor(tint) if tint else None, QColor(mark), ink, CUES[kind])
        for kind, (tint, mark, ink) in looks.items()
    }
