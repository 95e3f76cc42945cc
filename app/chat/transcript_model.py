"""The transcript's view model: entries, grown from the engine's records. No widgets."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.chat.cells import AttachedFile, Entry, Note, Reply, Tone, UserMessage, plain_text, summary
from app.chat.tool_calls import note_text
from app.language import mark, tr, trn
from engine import Failed, Finished, PrefillProgress, Record, Round

_STOP_NOTES = {
    "cancelled": mark("Stopped."),
    "length": mark("Ended at the length limit."),
    "context": mark("Ended: the context is full."),
    "stop-string": mark("Ended at a stop string."),
}


class TranscriptModel(QObject):
    """User messages, replies and notes in the order in which they are shown.

    Records may come in batches of any size; one signal tells of each batch.
    """

    appended = Signal(int)
    """Entries from this index on are new, or have grown (or shrunk away, where a passing note stood)."""
    reset = Signal()
    """Everything may have changed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[Entry] = []
        self._reply: Reply | None = None
        self._reasons: list[str] = []

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, oldest first."""
        return self._entries

    @property
    def replies(self) -> list[Reply]:
        """The model's replies, oldest first."""
        return [entry for entry in self._entries if isinstance(entry, Reply)]

    @property
    def last_reply(self) -> Reply | None:
        """The newest reply; unlike `replies`, found at once in a long conversation."""
        return next((entry for entry in reversed(self._entries) if isinstance(entry, Reply)), None)

    @property
    def active_reply(self) -> Reply | None:
        """The reply that is being written, if one is."""
        return self._reply

    def show(self, entries: Sequence[Entry]) -> None:
        """Show these entries and no others."""
        self._entries = list(entries)
        self._reply = None
        self.reset.emit()

    def add_user(self, text: str, message: int = 0, files: Sequence[AttachedFile] = ()) -> None:
        """Append what the person said."""
        self._entries.append(UserMessage(text, message, files))
        self.appended.emit(len(self._entries) - 1)

    def add_note(self, text: str, tone: Tone = "info") -> None:
        """Append a line of the program's own."""
        self._entries.append(Note(text, tone))
        self.appended.emit(len(self._entries) - 1)

    def begin_reply(self, message: int = 0) -> None:
        """Start a reply; the records that follow belong to it."""
        self.end_reply()
        self._reply = Reply()
        self._reply.message = message
        self._reasons = []
        self._entries.append(self._reply)
        self.appended.emit(len(self._entries) - 1)

    def continue_reply(self) -> None:
        """Open the last reply again: the records that follow belong to it."""
        for index in reversed(range(len(self._entries))):
            reply = self._entries[index]
            if isinstance(reply, Reply):
                del self._entries[index + 1 :]
                reply.active = True
                self._reply, self._reasons = reply, []
                self.reset.emit()
                return

    def add_records(self, records: Sequence[Record]) -> None:
        """Grow the reply by what happened. Without a `begin_reply`, the first round starts one."""
        first = self._open_end()
        changed = False
        for record in records:
            if isinstance(record, Round):
                self._add_round(record)
            elif isinstance(record, Finished | Failed):
                self._finish(record)
            elif not (isinstance(record, PrefillProgress) and self._show_prefill(record)):
                continue
            changed = True
        if changed:
            self.appended.emit(first)

    def end_reply(self) -> None:
        """Close the reply, also if no `Finished` or `Failed` came."""
        if self._reply is None:
            return
        first = self._open_end()
        self._close()
        self.appended.emit(first)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._reply = None
        self.reset.emit()

    def drop_last_reply(self) -> None:
        """Remove the last reply and the notes after it."""
        for index in reversed(range(len(self._entries))):
            if isinstance(self._entries[index], Reply):
                del self._entries[index:]
                self._reply = None
                self.reset.emit()
                return

    def plain_text(self, marks: bool = False) -> str:
        """The transcript as text; with `marks`, what became of each token too."""
        return plain_text(self._entries, marks)

    def _open_end(self) -> int:
        """Index of the active reply: everything before it is settled."""
        index = len(self._entries)
        if self._reply is not None:
            while index > 0 and self._entries[index - 1] is not self._reply:
                index -= 1
            index -= 1
        return index

    def _add_round(self, record: Round) -> None:
        self._drop_passing()
        if self._reply is None:
            self._reply = Reply()
            self._reasons = []
            self._entries.append(self._reply)
        self._reply.add_round(record)
        if record.note and record.note not in self._reasons:
            self._reasons.append(record.note)

    def _show_prefill(self, record: PrefillProgress) -> bool:
        if self._reply is None or len(self._reply):
            return False
        self._drop_passing()
        progress = trn(
            "Reading the prompt: {done} of {n} token",
            "Reading the prompt: {done} of {n} tokens",
            record.total,
            done=record.done,
        )
        self._entries.append(Note(record.stage[:1].upper() + record.stage[1:] or progress, passing=True))
        return True

    def _finish(self, record: Finished | Failed) -> None:
        if self._reply is not None:
            self._reply.stats = record.stats
        self._close()
        self._entries.extend(ending_notes(record, self._reasons))

    def _close(self) -> None:
        self._drop_passing()
        if self._reply is not None:
            self._reply.active = False
            self._reply = None

    def _drop_passing(self) -> None:
        if self._entries and isinstance(self._entries[-1], Note) and self._entries[-1].passing:
            self._entries.pop()


def ending_notes(record: Finished | Failed, reasons: Sequence[str] = ()) -> list[Note]:
    """What stands below a reply: the tools it calls, how it ended, why nothing was drafted (if anything tells), and
    what it cost."""
    notes = [Note(note_text(call), "call") for call in record.tool_calls] if isinstance(record, Finished) else []
    if isinstance(record, Failed):
        notes.append(Note(record.message, "error"))
    elif record.stats.stop_reason in _STOP_NOTES:
        notes.append(Note(tr(_STOP_NOTES[record.stats.stop_reason])))
    told = record.notes if isinstance(record, Finished) else ()
    notes.extend(Note(sentence) for sentence in dict.fromkeys([*told, *reasons]))
    if record.stats.rounds:
        notes.append(Note(summary(record.stats)))
    return notes
