"""What the hints of the first start say."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.help.tour import Hint


def first_hints(model: QWidget, composer: QWidget, page: QWidget, inspector: QWidget) -> tuple[Hint, ...]:
    """The four hints, each beside its part."""
    return (
        Hint(
            model,
            "Which model answers",
            "The demo opens by itself, so that you can begin at once. Ctrl+L shows the library, where your own models "
            "go.",
        ),
        Hint(
            composer,
            "Ask something",
            "Write here and press Enter, or click one of the examples above. Esc stops a reply.",
        ),
        Hint(
            page,
            "What the colours mean",
            "Every token of a reply shows what became of it: drafted and accepted, corrected, or the model's own. "
            "Refused drafts stand struck through. Point at a token to read its numbers.",
        ),
        Hint(
            inspector,
            "How well the drafts do",
            "The inspector plots how often drafts were accepted and what each round cost. Ctrl+Shift+P finds every "
            "command, F1 lists all keys.",
        ),
    )
