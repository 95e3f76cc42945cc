"""What the hints of the first start say."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.help.tour import Hint
from app.language import tr


def first_hints(model: QWidget, composer: QWidget, page: QWidget, inspector: QWidget) -> tuple[Hint, ...]:
    """The four hints, each beside its part."""
    return (
        Hint(
            model,
            tr("Which model answers"),
            tr(
                "The demo opens by itself, so that you can begin at once. Ctrl+L shows the library, where your own "
                "models go."
            ),
        ),
        Hint(
            composer,
            tr("Ask something"),
            tr("Write here and press Enter, or click one of the examples above. Esc stops a reply."),
        ),
        Hint(
            page,
            tr("What the colours mean"),
            tr(
                "Every token of a reply shows what became of it: drafted and accepted, corrected, or the model's own. "
                "Refused drafts stand struck through. Point at a token to read its numbers."
            ),
        ),
        Hint(
            inspector,
            tr("How well the drafts do"),
            tr(
                "The inspector plots how often drafts were accepted and what each round cost. Ctrl+Shift+P finds every "
                "command, F1 lists all keys."
            ),
        ),
    )
