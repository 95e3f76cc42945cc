"""When the program itself is at fault: one report for each distinct traceback, to be copied; nothing is sent."""

from __future__ import annotations

import platform
import sys
import threading
import traceback
from types import TracebackType

import PySide6
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.history.schema import HistoryError
from app.language import tr
from app.theme import GRID
from app.widgets import label
from engine import __version__


def report_text(trace: str) -> str:
    """The traceback with what a developer needs to know about the machine."""
    facts = f"Draftscope {__version__}, Python {platform.python_version()}, Qt {PySide6.__version__}"
    return f"{facts}, {platform.platform()}\n\n{trace}"


class CrashReporter(QObject):
    """Takes over `sys.excepthook` and `threading.excepthook` until `release`."""

    said = Signal(str)
    """A sentence about what is not the program's own fault: the history that cannot be used."""
    _raised = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._window = parent
        self._seen: set[str] = set()
        self.dialogs: list[CrashDialog] = []
        self._raised.connect(self.report, Qt.ConnectionType.QueuedConnection)  # may come from any thread
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception

    def release(self) -> None:
        """Put the hooks back."""
        sys.excepthook, threading.excepthook = self._before

    @Slot(str)
    def report(self, trace: str) -> None:
        """Write a traceback to stderr, and show it unless the same one was shown before."""
        if sys.stderr is not None:
            sys.stderr.write(trace)
        if trace not in self._seen:
            self._seen.add(trace)
            dialog = CrashDialog(report_text(trace), self._window)
            self.dialogs.append(dialog)
            dialog.show()

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QGuiApplication.quit()
            return
        if isinstance(error, HistoryError):
            self.said.emit(str(error))
            return
        self._raised.emit("".join(traceback.format_exception(kind, error, trace)))

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._on_exception(args.exc_type, args.exc_value, args.exc_traceback)


class CrashDialog(QDialog):
    """A report to copy. The program goes on as far as it can."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("crashDialog")
        self.setWindowTitle(tr("Something went wrong in Draftscope"))
        self.resize(90 * GRID, 50 * GRID)
        lead = label(
            tr(
                "This is a fault of the program, not yours. You can go on; if something looks wrong, copy what you "
                "need and start again. The report below names the place; please add it to a bug report."
            ),
            wrap=True,
        )
        self.report = QPlainTextEdit(text)
        self.report.setReadOnly(True)
        self.report.setAccessibleName(tr("Report"))
        self.report.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton(tr("Copy the report"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        for widget in (lead, self.report, buttons):
            column.addWidget(widget)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report.toPlainText())
