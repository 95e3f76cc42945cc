"""What is said when the program has to end before its window is there: started from a desktop, all else is unseen."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

MOST_CHARACTERS = 500
"""Of the reason, so that the box fits on the screen; the details have all of it."""


@contextmanager
def last_words(*, quiet: bool, leave: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Whatever is raised inside is told on stderr, in the log and, unless `quiet`, in a box; then the process ends
    with code 1.

    It ends as it is: the engine's thread may run already, and Qt aborts when a running thread is torn down.
    """
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:MOST_CHARACTERS]
        trace = "".join(traceback.format_exception(error))
        log = logging.getLogger("draftscope")
        if log.hasHandlers():  # else it would be on stderr twice
            log.critical("The program has to end\n%s", trace)
        with suppress(Exception):
            _write(f"{trace}Draftscope has to end: {reason}\n")  # not translated: stderr, perhaps before Qt
        if not quiet:
            with suppress(Exception):  # without Qt there is no box
                show(reason, trace)
        with suppress(Exception):
            sys.stdout.flush()
        leave(1)


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def show(reason: str, trace: str) -> None:
    """A plain box with the report as its details, until it is closed."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication, QMessageBox

    from app.crash import report_text
    from app.language import tr

    app = QApplication.instance() or QApplication(sys.argv[:1])
    box = QMessageBox(QMessageBox.Icon.Critical, tr("Something went wrong in Draftscope"), "")
    box.setObjectName("lastWords")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(tr("Draftscope has to end: {reason}", reason=reason))
    box.setInformativeText(
        tr("This is a fault of the program, not yours. The details name the place; please add them to a bug report.")
    )
    box.setDetailedText(report_text(trace))
    box.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    box.exec()
    del app  # alive until here
