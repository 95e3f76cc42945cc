"""Named presets of the settings of a reply: chosen from a list, saved under a name, deleted."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QComboBox, QHBoxLayout, QInputDialog, QWidget

from app.language import mark, tr
from app.settings import Preset, ReplyChoices
from app.theme import GRID
from app.widgets import push, tool
from engine import DraftOptions

_AROUND = 36
"""Pixels of the list beside its text."""
OWN = mark("Own settings")
USUAL = (
    Preset(mark("Recommended"), ReplyChoices()),
    Preset(mark("Without drafts, for comparison"), ReplyChoices(draft=DraftOptions("none"))),
)
"""Presets that everybody has; their names are shown in the person's language."""


class PresetBar(QWidget):
    """A list that says which preset the present settings are, and lets another be taken."""

    chosen = Signal(object)  # ReplyChoices
    saved = Signal(object)  # tuple[Preset, ...]: the person's own

    def __init__(self, presets: Sequence[Preset], choices: ReplyChoices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._own = tuple(presets)
        self._choices = choices
        self.list = QComboBox()
        self.list.setAccessibleName(tr("Preset"))
        self.list.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.list.setMinimumContentsLength(8)  # a long name gives way, else the panel would be wider than its dock
        self.list.setToolTip(tr("Sampling, drafting and length, kept together under a name"))
        self.list.activated.connect(self._on_activated)
        self._delete = tool("delete", tr("Delete this preset"), self.delete, role="muted")
        self._buttons = QWidget()
        buttons = QHBoxLayout(self._buttons)
        buttons.setContentsMargins(0, 0, 0, 0)
        buttons.setSpacing(GRID)
        buttons.addWidget(push(tr("Save as…"), self.ask_name, name=tr("Save these settings as a preset")))
        buttons.addWidget(self._delete)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(GRID)
        self._row.addWidget(self.list, 1)
        self._row.addWidget(self._buttons, 0, Qt.AlignmentFlag.AlignLeft)
        self._show()

    def minimumSizeHint(self) -> QSize:
        """The buttons below the list."""
        width = max(part.minimumSizeHint().width() for part in (self.list, self._buttons))
        return QSize(width, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        """Put the buttons beside the list where its words have room there."""
        wanted = self.list.fontMetrics().horizontalAdvance(self.list.currentText()) + _AROUND
        beside = wanted + GRID + self._buttons.sizeHint().width() <= self.width() or wanted > self.width()
        self._row.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def show_choices(self, choices: ReplyChoices) -> None:
        """Say which preset these settings are."""
        self._choices = choices
        self._show()

    @Slot()
    def ask_name(self) -> None:
        """Ask under which name the present settings are to be kept."""
        name, agreed = QInputDialog.getText(self, tr("Save as a preset"), tr("Name of the preset:"))
        if agreed:
            self.save(name)

    def save(self, name: str) -> None:
        """Keep the present settings under a name; one of the same name is replaced."""
        name = name.strip()
        if name and name not in (tr(OWN), *(tr(preset.name) for preset in USUAL)):
            self._keep((*(p for p in self._own if p.name != name), Preset(name, self._choices)))

    @Slot()
    def delete(self) -> None:
        """Forget the preset that is shown, if it is the person's own; the settings stay."""
        shown = self._own_shown()
        self._keep(tuple(preset for preset in self._own if preset is not shown))

    def _own_shown(self) -> Preset | None:
        """The person's own preset that the list shows; its name may be that of a usual one in some language."""
        at = self.list.currentIndex() - len(USUAL)
        return self._own[at] if 0 <= at < len(self._own) else None

    def _keep(self, own: tuple[Preset, ...]) -> None:
        self._own = own
        self._show()
        self.saved.emit(own)

    def _show(self) -> None:
        presets = (*USUAL, *self._own)
        blocker = QSignalBlocker(self.list)
        self.list.clear()
        for preset in USUAL:
            self.list.addItem(tr(preset.name), preset.choices)
        for preset in self._own:
            self.list.addItem(preset.name, preset.choices)
        at = next((i for i in reversed(range(len(presets))) if presets[i].choices == self._choices), -1)
        if at < 0:
            self.list.addItem(tr(OWN), self._choices)
            at = self.list.count() - 1
        self.list.setCurrentIndex(at)
        del blocker
        self._delete.setEnabled(self._own_shown() is not None)
        self._turn()

    @Slot(int)
    def _on_activated(self, at: int) -> None:
        self.chosen.emit(self.list.itemData(at))
