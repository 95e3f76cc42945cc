"""One download as a line: what it is, how far it is, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMessageBox, QProgressBar, QVBoxLayout

from app.language import mark, tr
from app.library.hub.desk import HubDesk, Transfer
from app.theme import GRID
from app.widgets import label, named, push

STEPS = 1000


class TransferRow(QFrame):
    """Pause or resume, discard; show it in the library once it is whole."""

    def __init__(self, desk: HubDesk, transfer: Transfer) -> None:
        super().__init__()
        named(self, "group")
        self.transfer = transfer
        self._desk = desk
        repo = transfer.order.repo
        self.meter = QProgressBar(textVisible=False, maximum=STEPS)
        self.meter.setAccessibleName(tr("Progress of {repo}", repo=repo))
        self.words = label("", "caption", wrap=True)
        self.go = push(tr("Pause"), self._on_go)
        self.drop = push(tr("Discard"), self._on_drop, name=tr("Discard the download of {repo}", repo=repo))
        self.show_in_library = push(tr("Show in the library"), name=tr("Show {repo} in the library", repo=repo))
        head = QHBoxLayout()
        head.setSpacing(GRID)
        title = label(repo, "name")
        title.setToolTip("\n".join(file.path for file in transfer.order.files))
        head.addWidget(title, 1)
        for button in (self.show_in_library, self.go, self.drop):
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, GRID, GRID, GRID)
        column.setSpacing(GRID // 2)
        column.addLayout(head)
        column.addWidget(self.meter)
        column.addWidget(self.words)
        self.question: QMessageBox | None = None
        self._state = transfer.state
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show how it stands now."""
        transfer, repo = self.transfer, self.transfer.order.repo
        going = transfer.state in ("running", "waiting", "pausing")
        done = transfer.state == "done"
        self.words.setText(transfer.words())
        self.words.setAccessibleName(f"{repo}: {transfer.words()}")
        if transfer.state != self._state:
            self._state = transfer.state
            QAccessible.updateAccessibility(QAccessibleEvent(self.words, QAccessible.Event.Alert))
        self.meter.setValue(round(STEPS * transfer.done / max(1, transfer.order.size)))
        self.meter.setVisible(not done)
        self.go.setVisible(not done)
        pause, resume = mark("Pause the download of {repo}"), mark("Resume the download of {repo}")
        self.go.setText(tr("Pause") if going else tr("Resume"))
        self.go.setAccessibleName(tr(pause if going else resume, repo=repo))
        self.go.setEnabled(transfer.state not in ("pausing", "discarding"))
        self.drop.setText(tr("Dismiss") if done else tr("Discard"))
        dismiss, discard = mark("Dismiss the download of {repo}"), mark("Discard the download of {repo}")
        self.drop.setAccessibleName(tr(dismiss if done else discard, repo=repo))
        self.drop.setEnabled(transfer.state != "discarding")
        self.show_in_library.setVisible(done)

    @Slot()
    def _on_go(self) -> None:
        if self.transfer.state in ("running", "waiting"):
            self._desk.pause(self.transfer)
        else:
            self._desk.resume(self.transfer)

    @Slot()
    def _on_drop(self) -> None:
        """What has been fetched took time: ask before it is deleted."""
        if self.transfer.state == "done":
            self._desk.dismiss(self.transfer)
        elif not self.transfer.done:
            self._desk.discard(self.transfer)
        else:
            self.question = question = QMessageBox(self.window())
            question.setWindowTitle(tr("Discard the download"))
            question.setText(tr("Delete what has been fetched of {repo}?", repo=self.transfer.order.repo))
            question.setInformativeText(tr("Files that are whole stay."))
            delete = question.addButton(tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
            question.setDefaultButton(question.addButton(tr("Keep"), QMessageBox.ButtonRole.RejectRole))
            delete.clicked.connect(lambda: self._desk.discard(self.transfer))
            question.open()
