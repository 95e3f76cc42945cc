"""The inspector: four figures and three plots that move while a reply is written."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.inspector.plots import AcceptancePlot, LengthPlot, TimePlot
from app.inspector.rounds_model import Headline, RoundsModel
from app.theme import Theme, current_theme
from engine import Record

_NOTHING = "–"


class Figure(QWidget):
    """A number with its caption."""

    def __init__(self, caption: str, tip: str) -> None:
        super().__init__()
        self.value = QLabel(_NOTHING)
        self.value.setProperty("type", "title")
        self.caption = QLabel(caption)
        self.caption.setProperty("type", "caption")
        self.setToolTip(tip)
        self.value.setAccessibleName(caption)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.value)
        column.addWidget(self.caption)

    def show_value(self, text: str) -> None:
        """Put in another number."""
        self.value.setText(text)
        self.setAccessibleName(f"{self.caption.text()}: {text}")


class InspectorPanel(QWidget):
    """Takes records at any rate; draws only in `refresh`, and then only what changed, and only when it can be seen."""

    def __init__(self, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme = theme or current_theme()
        self.setAccessibleName("Inspector")
        self.model = RoundsModel()
        self._drawn = -1
        self.redraws = 0
        """How often the plots were drawn."""
        self.rounds = Figure("rounds", "Verification passes since the chat began")
        self.per_round = Figure("tokens per round", "Accepted drafts and the model's own token; 1.0 is plain decoding")
        self.acceptance = Figure("accepted", "Accepted share of the drafts that were tested")
        self.speed = Figure("tokens/s", "Tokens per second of drafting and verifying")
        self.time = TimePlot(theme)
        self.positions = AcceptancePlot(theme)
        self.lengths = LengthPlot(theme)
        self._cards = (self.time, self.positions, self.lengths)
        self._lay_out()
        for box in (self.positions.rate, self.positions.source):
            box.currentIndexChanged.connect(self._redraw)
        self.apply_theme(theme)

    def add_records(self, records: Sequence[Record]) -> None:
        """Count rounds; nothing is drawn."""
        self.model.add_records(records)

    def clear(self) -> None:
        """Forget everything."""
        self.model.clear()
        self.refresh()

    def refresh(self) -> None:
        """Draw, if something changed and somebody can see it."""
        if self._drawn != self.model.version and self.isVisible() and not self.window().isMinimized():
            self._redraw()

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self.setStyleSheet(
            f'QLabel[type="caption"] {{ color: {theme.muted}; }} #inspectorBody {{ background: {theme.surface}; }}'
            f" #inspectorScroll {{ background: {theme.surface}; border: none; }}"
        )
        for card in self._cards:
            card.apply_theme(theme)

    def showEvent(self, event: QShowEvent) -> None:
        """What came while hidden is drawn now."""
        super().showEvent(event)
        self.refresh()

    def _redraw(self) -> None:
        self._drawn = self.model.version
        self.redraws += 1
        window = self.model.window()
        self._show_headline(self.model.headline())
        self.time.show_rounds(window)
        self.positions.show_model(self.model)
        self.lengths.show_rounds(window)

    def _show_headline(self, figures: Headline) -> None:
        self.rounds.show_value(f"{figures.rounds:,}".replace(",", "\u202f") if figures.rounds else _NOTHING)
        self.per_round.show_value(_number(figures.tokens_per_round, 2))
        acceptance = figures.acceptance
        self.acceptance.show_value(_NOTHING if acceptance is None else f"{100 * acceptance:.0f} %")
        self.speed.show_value(_number(figures.tokens_per_s, 1))

    def _lay_out(self) -> None:
        figures = QHBoxLayout()
        figures.setContentsMargins(12, 10, 12, 6)
        figures.setSpacing(12)
        for figure in (self.rounds, self.per_round, self.acceptance, self.speed):
            figures.addWidget(figure, 1)
        body = QFrame()
        body.setObjectName("inspectorBody")
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(4)
        column.addLayout(figures)
        for card in self._cards:
            column.addWidget(card, 1)
        scroll = QScrollArea()
        scroll.setObjectName("inspectorScroll")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)


def _number(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else f"{value:.{digits}f}"
