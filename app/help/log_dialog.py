"""The log in a window, with everything a bug report needs one click away."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.crash import report_text
from app.help import log
from app.language import tr
from app.theme import GRID
from app.widgets import label, open_at

REFRESH_MS = 500


class LogDialog(QDialog):
    """Shows what was noted, live while it is open; a hidden one costs nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("logDialog")
        self.setWindowTitle(tr("Log"))
        open_at(self, 110 * GRID, 60 * GRID)
        self.text = QPlainTextEdit()
        self.text.setPlaceholderText(tr("Nothing has been noted yet."))
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setMaximumBlockCount(log.LINES)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setAccessibleName(tr("Log"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy = buttons.addButton(tr("Copy for a bug report"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.close)
        lead = tr(
            "What the program noted since it was started. It stays on this computer; conversations are not in it."
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        column.addWidget(label(lead, wrap=True))
        column.addWidget(self.text, 1)
        column.addWidget(buttons)
        self._shown = 0
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self.refresh)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def refresh(self) -> None:
        """Add the lines that are new."""
        count, lines = log.BUFFER.count, log.BUFFER.lines
        new = min(count - self._shown, len(lines))
        if new > 0:
            self.text.appendPlainText("\n".join(lines[-new:]))
        self._shown = count

    @Slot()
    def _copy(self) -> None:
        lines = "\n".join(log.BUFFER.lines) or "The log is empty."  # not translated: bug reports are English
        QGuiApplication.clipboard().setText(report_text(lines))
