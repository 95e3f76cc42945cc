"""How each kind of token looks: a tint, and a second cue that needs no colour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QColor

from app.chat.cells import CellKind
from app.theme import Theme


class Cue(Enum):
    """The second cue, told apart by shape alone."""

    NONE = "none"
    SOLID = "solid underline"
    DOTTED = "dotted underline"
    NOTCH = "notch at the left"
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


WORDS = {
    CellKind.PLAIN: "model's own",
    CellKind.MTP: "accepted, MTP draft",
    CellKind.NGRAM: "accepted, n-gram draft",
    CellKind.CORRECTION: "correction of a refused draft",
    CellKind.BONUS: "bonus after a full run",
    CellKind.REFUSED: "refused draft",
    CellKind.UNUSED: "unused draft",
}
"""Every kind in a person's words: legend, token card and screen reader say the same."""

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


