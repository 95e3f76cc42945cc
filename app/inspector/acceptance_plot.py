"""Acceptance by position in the draft, all together or with phases or drafters apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QComboBox, QWidget

from app.inspector.plot_card import PlotCard, Table
from app.inspector.rounds_model import FEW, PhaseFilter, PositionRate, Rate, RoundsModel, SourceFilter
from app.language import mark, tr
from app.theme import Theme

_WIDTH = 0.62
"""Of all bars at one position."""


@dataclass(frozen=True, slots=True)
class Group:
    """The bars of one series."""

    name: str
    """As the CSV file calls it; shown translated."""
    source: SourceFilter
    phase: PhaseFilter
    hatched: bool = False


GROUPS = {
    "together": (Group(mark("all"), "all", "all"),),
    "phase": (Group(mark("thinking"), "all", "think", hatched=True), Group(mark("answer"), "all", "answer")),
    "source": (Group(mark("MTP"), "mtp", "all"), Group(mark("n-gram"), "ngram", "all")),
}


class AcceptancePlot(PlotCard):
    """How good the drafts are at each position."""

    title = mark("Acceptance")
    x_label = mark("Draft position in the round")
    y_label = mark("Accepted")
    y_unit = "%"
    reading = mark(
        "How often the 1st, 2nd, … draft of a round was accepted; the whisker is the 95 % interval (Wilson), "
        "grey means fewer than {few} tests. “If tested” counts drafts whose forerunners were accepted: how good the "
        "drafter is at this place. “Of proposed” counts every draft: how often drafting so far ahead pays. Bars that "
        "fall steeply say that a shorter draft length wastes less."
    )
    reading_values: ClassVar = {"few": FEW}

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.rate = choice(tr("Which rate"), ((tr("if tested"), "conditional"), (tr("of proposed"), "survival")))
        self.split = choice(
            tr("What to show apart"),
            ((tr("together"), "together"), (tr("think | answer"), "phase"), (tr("MTP | n-gram"), "source")),
        )
        for box in (self.split, self.rate):
            self.controls.addWidget(box)
        self.controls.addStretch(1)
        self._bars = pg.BarGraphItem(x=[], height=[], width=_WIDTH, pen=None)
        self._whiskers = pg.ErrorBarItem(beam=0.1)
        self._series: list[tuple[Group, list[PositionRate]]] = []
        self.plot.addItem(self._bars)
        self.plot.addItem(self._whiskers)
        self.plot.setYRange(0, 100, padding=0)
        self.plot.getAxis("left").setTicks([[(v, str(v)) for v in (0, 25, 50, 75, 100)]])
        self._ticks: list[tuple[int, str]] = []
        self.apply_theme(theme)

    def fit_font(self) -> None:
        """The ticks have two lines."""
        super().fit_font()
        line = self.fontMetrics().height()
        self.widget.setMinimumHeight(self.widget.minimumHeight() + 2 * line)
        self.plot.getAxis("bottom").setHeight(3 * line + 6)

    def show_model(self, model: RoundsModel) -> None:
        """Draw the rates that the two choices ask for."""
        rate: Rate = self.rate.currentData()
        groups = GROUPS[self.split.currentData()]
        self._series = [(group, model.positions(rate, group.source, group.phase)) for group in groups]
        self._draw_bars()
        shown = [r for _, rates in self._series for r in rates]
        self.show_empty(not shown)
        if shown:
            self._draw_axis(max(r.position for r in shown))
            self.describe("; ".join(filter(None, (self._words(*series) for series in self._series))))

    def paint_in(self, _theme: Theme) -> None:
        if self._series:
            self._draw_bars()

    def key(self) -> Sequence[tuple[str, str]]:
        if len(self._series) < 2:
            return ()
        return [(self._hue(group), _shown(group)) for group, _ in self._series]

    def table(self) -> Table:
        names = ("group", "position", "accepted", "n", "share", "low_95", "high_95")
        rows = [
            (group.name, r.position, r.accepted, r.tests, r.share, r.low, r.high)
            for group, rates in self._series
            for r in rates
        ]
        return names, rows

    def _draw_bars(self) -> None:
        width = _WIDTH / max(1, len(self._series))
        bars = [
            (r.position - _WIDTH / 2 + width * (place + 0.5), r, self._brush(group, r))
            for place, (group, rates) in enumerate(self._series)
            for r in rates
        ]
        x = np.array([at for at, _, _ in bars], dtype=np.float64)
        share, low, high = (np.array([100 * getattr(r, part) for _, r, _ in bars]) for part in ("share", "low", "high"))
        self._bars.setOpts(x=x, height=share, width=0.94 * width, brushes=[brush for _, _, brush in bars])
        self._whiskers.setData(x=x, y=share, top=high - share, bottom=share - low, pen=self.fine_pen(self._theme.text))
        self.show_key()

    def _draw_axis(self, last: int) -> None:
        """Ticks with the number of tests below; drawn anew only when they changed."""
        counts = [{r.position: r.tests for r in rates} for _, rates in self._series]
        ticks = [(k, f"{k}\nn={'|'.join(str(c.get(k, 0)) for c in counts)}") for k in range(1, last + 1)]
        if ticks != self._ticks:
            self._ticks = ticks
            self.plot.setXRange(0.4, max(4.0, last) + 0.6, padding=0)
            self.plot.getAxis("bottom").setTicks([ticks])

    def _words(self, group: Group, rates: Sequence[PositionRate]) -> str:
        said = "; ".join(
            tr("position {position}: {share:.0%}, n={tests}", position=r.position, share=r.share, tests=r.tests)
            for r in rates
        )
        return said if group.name == "all" or not said else f"{tr(group.name)}: {said}"

    def _hue(self, group: Group) -> str:
        return self._theme.accepted_ngram if group.source == "ngram" else self._theme.accepted_mtp

    def _brush(self, group: Group, rate: PositionRate) -> QBrush:
        colour = QColor(self._theme.plain if rate.few else self._hue(group))
        return QBrush(colour, Qt.BrushStyle.BDiagPattern if group.hatched else Qt.BrushStyle.SolidPattern)


def _shown(group: Group) -> str:
    """A series in the key."""
    name = tr(group.name)
    return tr("{name} (hatched)", name=name) if group.hatched else name


def choice(name: str, items: Sequence[tuple[str, str]]) -> QComboBox:
    """A small drop-down for a plot's header."""
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    for words, value in items:
        box.addItem(words, value)
    return box
