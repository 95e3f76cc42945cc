"""Files that were dropped on the window or given to the program: each kind goes where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.history.attaching import attachable
from app.library.choice import classify, open_choice
from app.runs.desk import is_run

if TYPE_CHECKING:
    from app.main_window import MainWindow


def open_files(window: MainWindow, paths: list[Path]) -> None:
    """Show a run, attach texts and pictures to the message, load a checkpoint with its sidecar; a sidecar alone goes to
    the model in use."""
    if len(paths) == 1 and is_run(paths[0]):
        window.runs.open_path(paths[0])
    elif all(attachable(path) for path in paths):
        window.files.add(paths)
        window.composer.edit.setFocus()
    elif problem := open_choice(classify(paths), window.controller.model, window.load):
        window.message_bar.show_message(problem, "warning")
