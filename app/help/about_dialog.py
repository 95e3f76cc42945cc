"""About: which version this is, on what it runs, its licence and those of others, and the check for a newer one."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable
from importlib.resources import files

import PySide6
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.courier import Courier
from app.help.update_check import PAGE, Answer, check
from app.icons import pixmap
from app.language import mark, tr
from app.theme import GRID
from app.widgets import label, open_at, push
from engine import __version__

LEAD = mark(
    "Runs language models of the Qwen3.5 family on your own computer and shows speculative decoding at work.\n"
    "Licence: Apache-2.0. Your conversations stay on this computer."
)
NOTICES = "THIRD-PARTY-NOTICES.txt"
"""Among the resources of a frozen program, which brings along what others made."""
MARK = 64


def notices() -> str:
    """The licences of what this program brings along; empty if it brings nothing, as when pip installed it."""
    file = files("resources").joinpath(NOTICES)
    return file.read_text("utf-8") if file.is_file() else ""


class AboutDialog(QDialog):
    """Asks for a newer version only when the button is clicked, or when `ask` is called because the person wants it."""

    def __init__(self, parent: QWidget | None = None, check_now: Callable[[], Answer] = check) -> None:
        super().__init__(parent)
        self.setObjectName("aboutDialog")
        self.setWindowTitle(tr("About Draftscope"))
        self._check = check_now
        self._courier = Courier(self)
        self._courier.brought.connect(self._show)
        picture = label()
        picture.setPixmap(pixmap("draftscope", "#000000", MARK, self.devicePixelRatioF()))
        picture.setAccessibleName(tr("Draftscope's mark"))
        facts = f"Python {platform.python_version()}, Qt {PySide6.__version__}, {platform.system()}"
        self.answer = label(kind="caption", wrap=True)
        self.answer.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.answer.setTextFormat(Qt.TextFormat.RichText)
        self.answer.setOpenExternalLinks(True)
        self.button = push(tr("Check for a new version"), self.ask)
        words = QVBoxLayout()
        words.setSpacing(GRID)
        words.addWidget(label(f"Draftscope {__version__}", "heading"))
        words.addWidget(label(tr(LEAD), wrap=True))
        words.addWidget(label(facts, "caption"))
        words.addWidget(self.answer)
        words.addStretch(1)
        top = QHBoxLayout()
        top.setSpacing(3 * GRID)
        top.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.addButton(self.button, QDialogButtonBox.ButtonRole.ActionRole)
        if text := notices():
            licences = push(tr("Licences of others"), lambda: LicencesDialog(text, self).open())
            buttons.addButton(licences, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 3 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(3 * GRID)
        column.addLayout(top, 1)
        column.addWidget(buttons)
        self.setMinimumWidth(70 * GRID)

    @Slot()
    def ask(self) -> None:
        """Ask whether there is a newer version; the answer comes into the dialog."""
        self.button.setEnabled(False)
        self.answer.setText(tr("Asking pypi.org…"))
        self._courier.rest()
        self._courier.expect()
        check_now, put = self._check, self._courier.box.put
        # A daemon: who quits while a server keeps silent need not wait for it.
        threading.Thread(target=lambda: put(check_now()), name="updates", daemon=True).start()

    @Slot(object)
    def _show(self, answer: Answer) -> None:
        self._courier.rest()
        self.button.setEnabled(True)
        said = _plain(answer.sentence)
        if answer.newer:
            described = _plain(tr("It is described at {page}."))
            said += " " + described.replace("{page}", f'<a href="{PAGE}">{PAGE}</a>')
        self.answer.setText(said)


class LicencesDialog(QDialog):
    """The notices, as they are in the file."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("licencesDialog")
        self.setWindowTitle(tr("Licences of others"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        open_at(self, 100 * GRID, 80 * GRID)
        view = QPlainTextEdit(text)
        view.setReadOnly(True)
        view.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        view.setAccessibleName(tr("Licences of others"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.addWidget(view, 1)
        column.addWidget(buttons)


def _plain(text: str) -> str:
    """Text that a label shows as it is, though it holds a link beside it."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
