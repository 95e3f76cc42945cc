"""What this computer has and lacks, as `python -m engine doctor` says it, in a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QVBoxLayout, QWidget

from app.language import mark, tr, trn
from app.theme import GRID
from app.widgets import ScrollingPage, label, named, open_at

if TYPE_CHECKING:
    from engine import Finding

MARKS = {"ok": "✓", "note": "!", "missing": "✗"}
SAID = {"ok": mark("fine"), "note": mark("note"), "missing": mark("missing")}


def as_text(findings: Sequence[Finding]) -> str:
    """The findings as lines to paste."""
    width = max((len(finding.name) for finding in findings), default=0)
    lines = [
        f"{MARKS[f.state]} {f.name:<{width}}  {f.value}" + (f"  ({f.remedy})" if f.remedy else "") for f in findings
    ]
    return "\n".join(lines)


def summary(findings: Sequence[Finding]) -> str:
    """All of them in one sentence."""
    missing, notes = (sum(f.state == state for f in findings) for state in ("missing", "note"))
    if missing:
        return trn(
            "{n} thing is missing; what mends it stands beside it.",
            "{n} things are missing; what mends it stands beside it.",
            missing,
        )
    if notes:
        return trn(
            "Everything works; {n} point could be better.", "Everything works; {n} points could be better.", notes
        )
    return tr("Everything is as it should be.")


class DoctorDialog(QDialog):
    """The findings as a table, what needs attention first."""

    def __init__(self, findings: Sequence[Finding], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("doctorDialog")
        self.setWindowTitle(tr("This computer"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        open_at(self, 90 * GRID, 70 * GRID)
        self._findings = findings
        area = named(ScrollingPage(), "settingsScroll")
        area.setAccessibleName(tr("Findings"))
        area.setWidget(self._table(sorted(findings, key=lambda f: ("missing", "note", "ok").index(f.state))))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy = buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        column.addWidget(label(summary(findings), "heading", wrap=True))
        column.addWidget(area, 1)
        column.addWidget(buttons)

    def _table(self, findings: Sequence[Finding]) -> QWidget:
        table = named(QWidget(), "settingsPanel")
        grid = QGridLayout(table)
        grid.setContentsMargins(0, 0, GRID, 0)
        grid.setHorizontalSpacing(2 * GRID)
        grid.setVerticalSpacing(GRID)
        grid.setColumnStretch(2, 1)
        top = Qt.AlignmentFlag.AlignTop
        for row, finding in enumerate(findings):
            sign = label(MARKS[finding.state], "heading")
            sign.setAccessibleName(tr(SAID[finding.state]))
            said = (
                f"{finding.value}\n{finding.remedy[:1].upper()}{finding.remedy[1:]}."
                if finding.remedy
                else finding.value
            )
            name, value = label(finding.name), label(said, wrap=True)
            for text in (name, value):  # both, as selectable text stands a pixel higher
                text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(sign, row, 0, top)
            grid.addWidget(name, row, 1, top)
            grid.addWidget(value, row, 2, top)
        grid.setRowStretch(len(findings), 1)
        return table

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(as_text(self._findings))
