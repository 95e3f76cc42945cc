"""Cost split: where the time went in all, and what drafting gained over plain decoding measured here."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.inspector.plot_card import USUAL_LINE, PlotCard, Table
from app.inspector.rounds_model import Costs, RoundsModel
from app.language import mark, tr
from app.theme import Theme
from app.widgets import push

_PARTS = (mark("draft"), mark("verify"), mark("disk wait"))
"""As the CSV file calls them; shown translated."""


class CostPlot(PlotCard):
    """One bar of three parts, and the speed-up once plain decoding was measured."""

    title = mark("Cost")
    x_label = mark("Share of the time of all rounds, %")
    y_label = ""
    reading = mark(
        "All rounds' time: drafting, checking the drafts, waiting for the disk. Drafting pays when it costs less "
        "than the passes it saves. The button reads the last prompt once more without drafts, so that the speed-up "
        "stands on a measurement on this computer, now, and not on a guess."
    )

    measure_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._bars = [pg.BarGraphItem(x0=[0], width=[0], y=[0], height=0.9, pen=None) for _ in _PARTS]
        for bars in self._bars:
            self.plot.addItem(bars)
        self._costs = Costs(0.0, 0.0, 0.0)
        self._speed: float | None = None
        self.plain: float | None = None
        """Tokens per second of plain decoding, where measured."""
        self.plot.setXRange(0, 100, padding=0)
        self.plot.setYRange(-0.5, 0.5, padding=0)
        self.plot.hideAxis("left")
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.button: QPushButton = push(tr("Measure plain decoding on this prompt"), self.measure_requested.emit)
        self.button.setProperty("kind", "link")
        column = self.layout()
        assert column is not None
        column.addWidget(self.words)
        column.addWidget(self.button)
        self.apply_theme(theme)

    def fit_font(self) -> None:
        """A single bar, and the axis below it."""
        lines = 2 * max(0, self.fontMetrics().height() - USUAL_LINE)
        self.plot.setContentsMargins(6, 4, 14, 0)
        self.widget.setMinimumHeight(64 + lines)
        self.widget.setMaximumHeight(76 + lines)

    def show_model(self, model: RoundsModel) -> None:
        """Draw the shares."""
        self._costs = model.costs()
        self._speed = model.headline().tokens_per_s
        total = self._costs.total_s
        self.show_empty(total <= 0)
        left = 0.0
        for bars, seconds in zip(self._bars, self._seconds(), strict=True):
            width = 100 * seconds / total if total > 0 else 0.0
            bars.setOpts(x0=[left], width=[width], y=[0])
            left += width
        self._say()

    def show_plain(self, tokens_per_s: float | None) -> None:
        """What plain decoding was measured to do; None forgets it."""
        self.plain = tokens_per_s
        self._say()

    def show_button(self, enabled: bool, words: str = "") -> None:
        """Whether plain decoding can be measured now, or what is going on instead."""
        self.button.setEnabled(enabled)
        self.button.setText(words or tr("Measure plain decoding on this prompt"))

    def key(self) -> Sequence[tuple[str, str]]:
        theme = self._theme
        return tuple(zip((theme.draft, theme.verify, theme.disk), map(tr, _PARTS), strict=True))

    def paint_in(self, theme: Theme) -> None:
        for bars, colour in zip(self._bars, (theme.draft, theme.verify, theme.disk), strict=True):
            bars.setOpts(brush=pg.mkBrush(colour))

    def table(self) -> Table:
        total = self._costs.total_s or 1.0
        return ("part", "seconds", "share"), [
            (name, seconds, seconds / total) for name, seconds in zip(_PARTS, self._seconds(), strict=True)
        ]

    @property
    def speed_up(self) -> float | None:
        """Tokens per second with drafts over those without."""
        return self._speed / self.plain if self._speed and self.plain else None

    def _seconds(self) -> tuple[float, float, float]:
        return self._costs.draft_s, self._costs.verify_s, self._costs.wait_s

    def _say(self) -> None:
        total = self._costs.total_s
        if total <= 0:
            self.words.setText("")
            return
        named = zip(map(tr, _PARTS), self._seconds(), strict=True)
        said = " · ".join(f"{name} {1e3 * s:.0f} ms ({s / total:.0%})" for name, s in named)
        if self.speed_up is not None:
            said += "\n" + tr(
                "{times:.2f} × plain decoding ({speed:.1f} against {plain:.1f} tokens/s)",
                times=self.speed_up,
                speed=self._speed,
                plain=self.plain,
            )
        self.words.setText(said)
        self.describe(said)
