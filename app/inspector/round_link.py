"""Keeps inspector and transcript on the same round: a token that is clicked, a round that is scrubbed to."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.chat.cells import Cell, Reply
from app.chat.transcript_view import TranscriptView
from app.inspector.panel import InspectorPanel
from engine import Round


class RoundLink(QObject):
    """Between one transcript and the inspector, while `on`."""

    def __init__(self, view: TranscriptView, inspector: InspectorPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._inspector = inspector
        self.on = True
        view.token_chosen.connect(self._on_token)
        inspector.round_chosen.connect(self._on_round)

    @Slot()
    def leave(self) -> None:
        """No round is chosen any more."""
        self._view.leave_round()
        self._inspector.choose(None)

    @Slot(object)
    def _on_token(self, cell: Cell | None) -> None:
        if not self.on or cell is None:
            return
        self._inspector.choose(cell.round if cell.round.index > 0 else None)
        self._show(cell.round, travel=False)

    @Slot(object)
    def _on_round(self, record: Round | None) -> None:
        if not self.on:
            return
        if record is None:
            self._view.leave_round()
        else:
            self._show(record, travel=True)

    def _show(self, record: Round, *, travel: bool) -> None:
        place = find(self._view, record)
        if place is None:
            self._view.leave_round()
        else:
            self._view.show_round(*place, travel=travel)


def find(view: TranscriptView, record: Round) -> tuple[int, int] | None:
    """(entry, index among its reply's rounds) of a round; the newest reply that has it counts."""
    for entry in reversed(range(len(view.model.entries))):
        reply = view.model.entries[entry]
        if isinstance(reply, Reply) and (index := reply.number_of(record)) >= 0:
            return entry, index
    return None
