"""One run as a page: its transcript from the trace, with a line that says what ran."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.chat.legend import Legend
from app.chat.transcript_model import TranscriptModel
from app.chat.transcript_view import TranscriptView
from app.language import tr
from app.runs.summary import heading
from app.theme import GRID, Theme
from app.widgets import ElidedLabel, label
from engine import Round, Trace


class RunView(QWidget):
    """Shows a trace as the chat showed it."""

    def __init__(self, theme: Theme, name: str = "") -> None:
        """`name`: a letter in front, where two are side by side."""
        super().__init__()
        self._name = name
        self.trace: Trace | None = None
        self.transcript = TranscriptModel(self)
        self.view = TranscriptView(self.transcript, theme)
        self.view.setAccessibleName(tr("Transcript of run {name}", name=name).strip())
        self.title = ElidedLabel()
        self.title.setProperty("type", "heading")
        self.note = label("", "caption", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = QVBoxLayout()
        head.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID // 2)
        head.setSpacing(2)
        row = QHBoxLayout()
        row.addWidget(self.title, 1)
        head.addLayout(row)
        head.addWidget(self.note)
        self.head = row
        column.addLayout(head)
        column.addWidget(self.view, 1)
        self.legend = Legend(theme)
        self.legend.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        self.legend.setVisible(not name)
        column.addWidget(self.legend)

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self.view.apply_theme(theme)
        self.legend.apply_theme(theme)

    def show_trace(self, trace: Trace) -> None:
        """Put in a run."""
        self.trace = trace
        self.title.show_text(f"{self._name}  {heading(trace.header)}".strip())
        self.title.setToolTip(self.title.whole)
        self.note.setText(tr("The file ends inside a line: the run was cut off.") if trace.cut else "")
        self.note.setVisible(trace.cut)
        self.transcript.clear()
        if trace.header.prompt:
            self.transcript.add_user(trace.header.prompt)
        self.transcript.begin_reply()
        self.transcript.add_records(trace.records)
        self.transcript.end_reply()
        self.view.show_start()

    def mark(self, record: Round | None) -> None:
        """Mark a round and bring it into sight."""
        entry = next((i for i, e in enumerate(self.transcript.entries) if e is self.transcript.last_reply), None)
        if record is None or entry is None or self.trace is None:
            self.view.leave_round()
            return
        self.view.show_round(entry, self.trace.rounds.index(record), travel=False)
