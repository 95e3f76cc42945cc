"""Opening the history at the start of the program, or one in a temporary place if it cannot be opened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from app.history.schema import FILE_NAME, HistoryError
from app.history.store import Store
from app.language import tr


def open_store(folder: Path) -> tuple[Store, str]:
    """The history of a folder. If it cannot be used: an empty one that is forgotten, and why."""
    try:
        return Store(folder / FILE_NAME), ""
    except HistoryError as error:
        passing = Path(tempfile.mkdtemp(prefix="draftscope-"))
        where = tr("What is said now is kept in {folder} only.", folder=passing)
        return Store(passing / FILE_NAME), f"{error} {where}"
