"""The inspector's plots, one below the other. With them comes pyqtgraph: imported after the first paint."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout

from app.inspector.acceptance_plot import AcceptancePlot
from app.inspector.calibration_plot import CalibrationPlot
from app.inspector.cost_plot import CostPlot
from app.inspector.plot_card import PlotCard
from app.inspector.plots import LengthPlot, RoundPlot, SpeedPlot, TimePlot
from app.inspector.rounds_model import RoundsModel, RoundWindow
from app.theme import Theme

KINDS: tuple[tuple[str, type[PlotCard]], ...] = (
    ("positions", AcceptancePlot),  # what the program is about comes first, in sight of a small window
    ("time", TimePlot),
    ("speeds", SpeedPlot),
    ("lengths", LengthPlot),
    ("calibration", CalibrationPlot),
    ("cost", CostPlot),
)


class PlotStack(QFrame):
    """Made card by card, so that the window answers in between; whole once `grow` says so."""

    measure_requested = Signal()
    choice_changed = Signal()
    """A person wants to see something else in a plot."""
    painted_stale = Signal()
    """Some of it is seen again while cards lack the newest rounds."""

    time: TimePlot
    speeds: SpeedPlot
    positions: AcceptancePlot
    lengths: LengthPlot
    calibration: CalibrationPlot
    cost: CostPlot

    def __init__(self, model: RoundsModel, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("inspectorBody")
        self._model = model
        self._theme = theme
        self._stale: set[PlotCard] = set()
        """Cards out of sight that lack the newest rounds."""
        self.cards: list[PlotCard] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 8)
        self._column.setSpacing(4)
        self._column.addStretch(1)  # until the last card is there, so that those above keep their places

    @property
    def whole(self) -> bool:
        """Whether every card is there."""
        return len(self.cards) == len(KINDS)

    def grow(self) -> bool:
        """Make the next card; true once all are there."""
        if len(self.cards) < len(KINDS):
            name, kind = KINDS[len(self.cards)]
            card = kind(self._theme)
            setattr(self, name, card)
            self._column.insertWidget(len(self.cards), card, 0 if kind is CostPlot else 1)
            self.cards.append(card)
            if len(self.cards) == len(KINDS):
                self._finish()
        return self.whole

    def _finish(self) -> None:
        self._column.takeAt(len(self.cards))
        for box in (self.positions.rate, self.positions.split):
            box.currentIndexChanged.connect(self.choice_changed)
        self.cost.measure_requested.connect(self.measure_requested)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A panel behind another tab is neither hidden nor shown: only painting tells that it is in front again."""
        super().paintEvent(event)
        if self._stale:
            self.painted_stale.emit()

    @property
    def over_rounds(self) -> tuple[RoundPlot, ...]:
        """The cards whose axis is the round."""
        return tuple(card for card in self.cards if isinstance(card, RoundPlot))

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        for card in self.cards:
            card.apply_theme(theme)

    def mark_round(self, number: int | None) -> None:
        """Show which round is chosen."""
        for plot in self.over_rounds:
            plot.mark_round(number)

    def draw(self, card: PlotCard, window: RoundWindow) -> None:
        """Draw one card: these rounds, or all of the model's."""
        self._stale.discard(card)
        if isinstance(card, RoundPlot):
            card.show_rounds(window)
        elif isinstance(card, AcceptancePlot | CalibrationPlot | CostPlot):
            card.show_model(self._model)

    def in_sight(self) -> list[PlotCard]:
        """The cards that can be seen; the others are drawn when they come into sight."""
        seen = [card for card in self.cards if not card.visibleRegion().isEmpty()]
        self._stale.update(card for card in self.cards if card not in seen)
        return seen

    def came_into_sight(self) -> list[PlotCard]:
        """Cards that can be seen and lack the newest rounds."""
        return [card for card in self.cards if card in self._stale and not card.visibleRegion().isEmpty()]
