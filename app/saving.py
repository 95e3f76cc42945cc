"""Where a file goes that a person saves: with the right ending, and never unasked over another file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from PySide6.QtWidgets import QMessageBox, QWidget

from app.language import tr


def place_of(parent: QWidget, chosen: str, endings: Collection[str], usual: str) -> Path | None:
    """The file that was chosen in a dialog; one with none of the `endings` gets the `usual` one. The dialog knew
    nothing of that name, so if such a file is there the person is asked; None if it is to stay."""
    path = Path(chosen)
    if path.suffix.lower() in endings:
        return path
    path = path.with_name(path.name + usual)
    if path.exists():
        question = tr("{name} is there already. Replace it?", name=path.name)
        buttons = QMessageBox.StandardButton
        if QMessageBox.question(parent, tr("Replace the file?"), question) != buttons.Yes:
            return None
    return path
