"""Drives the window from the command line: load, ask, wait, take a picture, quit. For documentation and tests."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from app.main_window import MainWindow
from engine import Failed, Finished

if TYPE_CHECKING:
    from engine import ModelInfo

SETTLE_MS = 400
"""After the last record: enough for the text, the plots and the layout to come to rest."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be done. Without `quit` the window stays open afterwards."""

    prompt: str = ""
    screenshot: Path | None = None
    quit: bool = False


class Drive(QObject):
    """Runs one errand on a window; `code` is what the process should return."""

    def __init__(self, window: MainWindow, errand: Errand) -> None:
        super().__init__(window)
        self._window = window
        self._errand = errand
        self.code = 0
        self._ended = False
        window.controller.loaded.connect(self._on_loaded)
        window.controller.load_failed.connect(self._fail)
        window.controller.load_cancelled.connect(self._on_cancelled)
        window.controller.reply_ended.connect(self._on_reply_ended)

    @Slot(object)
    def _on_loaded(self, _info: ModelInfo) -> None:
        if self._errand.prompt:
            QTimer.singleShot(0, self, self._ask)
        else:
            QTimer.singleShot(SETTLE_MS, self, self._end)

    def show_run(self, path: Path) -> None:
        """Show a saved run; then the errand is done."""
        self._window.runs.said.connect(self._tell_problem)
        if self._window.runs.open_path(path):
            QTimer.singleShot(SETTLE_MS, self, self._end)
        elif self._errand.quit:
            self._fail(f"The run {path} could not be shown.")  # not translated: for the terminal

    @Slot(str, str)
    def _tell_problem(self, sentence: str, level: str) -> None:
        if level == "error" and sys.stderr is not None:
            sys.stderr.write(f"{sentence}\n")

    @Slot()
    def _ask(self) -> None:
        self._window.new_chat()
        if not self._window.controller.send(self._errand.prompt):
            empty = "The prompt is empty; give one with --prompt."  # not translated: for the terminal
            self._fail(self._window.controller.why_not_send() or empty)

    @Slot()
    def _on_cancelled(self) -> None:
        self._fail("Loading was cancelled.")  # not translated: for the terminal

    @Slot(object)
    def _on_reply_ended(self, last: Finished | Failed) -> None:
        if isinstance(last, Failed):
            self._fail(last.message)
        else:
            QTimer.singleShot(SETTLE_MS, self, self._end)

    @Slot(str)
    def _fail(self, sentence: str) -> None:
        self.code = 1
        if sys.stderr is not None:
            sys.stderr.write(f"{sentence}\n")
        QTimer.singleShot(SETTLE_MS, self, self._end)

    @Slot()
    def _end(self) -> None:
        """Take the picture, also of a failure, and leave if that was asked for."""
        if self._ended:  # the person goes on by hand
            return
        self._ended = True
        self._window.controller.loaded.disconnect(self._on_loaded)
        if self._errand.screenshot is None:
            self._leave()
        else:
            self._window.inspector.complete()  # plots that are made only now get their places in the next turns
            QTimer.singleShot(SETTLE_MS, self, self._take_picture)

    @Slot()
    def _take_picture(self) -> None:
        picture = self._errand.screenshot
        self._window.inspector.complete()
        if not self._window.grab().save(str(picture)):
            self.code = 1
            if sys.stderr is not None:
                problem = f"The picture {picture} cannot be written; choose another place."  # not translated: as above
                sys.stderr.write(f"{problem}\n")
        self._leave()

    def _leave(self) -> None:
        errand, self._errand = self._errand, Errand()
        if errand.quit:
            self._window.close()
