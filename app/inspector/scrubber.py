"""The round scrubber: a slider over all rounds, and in words what happened in the one it stands on."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

from app.icons import ink_icons
from app.inspector.round_words import sentence
from app.inspector.rounds_model import RoundsModel
from app.language import tr
from app.theme import Theme
from app.widgets import label, push, tool


class Scrubber(QWidget):
    """Steps through the rounds. `number` None means that none is chosen and everything is shown."""

    moved = Signal(object)
    """The number that a person went to, or None for all rounds."""

    def __init__(self, model: RoundsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.number: int | None = None
        self.setAccessibleName(tr("Round scrubber"))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(tr("Round"))
        self.slider.setToolTip(
            tr(
                "Step through the rounds: the transcript shows what had been said by then, and what this round "
                "proposed (arrow keys here, Alt+Left and Alt+Right anywhere)."
            )
        )
        self.slider.valueChanged.connect(self.go)
        self.back = tool("back", tr("Previous round"), lambda: self.step(-1), role="muted")
        self.on = tool("forward", tr("Next round"), lambda: self.step(1), role="muted")
        self.all = push(tr("Show all"), lambda: self.go(None), kind="link", tip=tr("Show the whole reply again"))
        self.title = label("", "value")
        self.words = QLabel()
        self.words.setProperty("type", "caption")
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self.refresh()

    @property
    def last(self) -> int:
        """Number of the newest round."""
        return self._model.rounds

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        ink_icons(self, theme)

    def refresh(self) -> None:
        """Take in new rounds; a chosen one stays chosen."""
        if self.number is not None and self.number > self.last:
            self.number = None
        with QSignalBlocker(self.slider):
            self.slider.setRange(1, max(1, self.last))
            self.slider.setValue(self.number or self.last)
        self.slider.setEnabled(self.last > 0)
        self.back.setEnabled((self.number or self.last) > 1)
        self.on.setEnabled(self.number is not None)
        self.all.setVisible(self.number is not None)
        self._say()

    def show_number(self, number: int | None) -> None:
        """Stand on a round that was chosen elsewhere."""
        if number != self.number:
            self.number = number
            self.refresh()

    @Slot(object)
    def go(self, number: int | None) -> None:
        """Go to a round, as if the person had moved the slider."""
        self.number = None if number is None else min(max(1, number), self.last)
        self.refresh()
        self.moved.emit(self.number)

    def step(self, by: int) -> None:
        """One round back or on; on from the last one leads to all of them."""
        here = self.number if self.number is not None else self.last + (by < 0 and self.last > 1)
        if self.last:
            self.go(None if here + by > self.last else here + by)

    def _say(self) -> None:
        if self.number is None:
            self.title.setText(tr("All rounds") if self.last else tr("No rounds yet"))
            hint = tr("Move the slider, or click a token, to look at a single round.")
            self.words.setText(hint if self.last else "")
        else:
            self.title.setText(tr("Round {number} of {last}", number=self.number, last=self.last))
            self.words.setText(sentence(self._model.log[self.number - 1]))
        self.slider.setAccessibleDescription(f"{self.title.text()}. {self.words.text()}")

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(4)
        for widget, stretch in ((self.back, 0), (self.slider, 1), (self.on, 0)):
            row.addWidget(widget, stretch)
        head = QHBoxLayout()
        head.addWidget(self.title)
        head.addStretch(1)
        head.addWidget(self.all)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 4, 12, 4)
        column.setSpacing(2)
        column.addLayout(head)
        column.addLayout(row)
        column.addWidget(self.words)
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing() + 4)
        self.words.setAlignment(Qt.AlignmentFlag.AlignTop)
