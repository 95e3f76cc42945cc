"""Calibration: is a draft accepted as often as the drafter's own probability promises?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.inspector.plot_card import PlotCard, Table
from app.inspector.rounds_model import FEW, CalibrationBin, RoundsModel
from app.language import mark, tr
from app.theme import Theme


class CalibrationPlot(PlotCard):
    """Acceptance against what the drafter claimed."""

    title = mark("Calibration")
    x_label = mark("Draft probability, %")
    y_label = mark("Accepted")
    y_unit = "%"
    reading = mark(
        "Tested MTP drafts in ten bins of the drafter's own probability, against how often they were accepted; "
        "whiskers are 95 % intervals (Wilson), grey means fewer than {few} tests. On the dotted line the drafter "
        "promises what it keeps; below it the drafter is too sure of itself. A rising row of dots means that its "
        "probability tells good drafts from bad ones. N-gram drafts have no probability and are left out."
    )
    reading_values: ClassVar = {"few": FEW}

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._promise = pg.PlotDataItem([0, 100], [0, 100])
        self._whiskers = pg.ErrorBarItem(beam=2.0)
        self._dots = pg.ScatterPlotItem(size=8, pen=None, useCache=False)  # shapes, in a saved drawing too
        self._bins: list[CalibrationBin] = []
        for item in (self._promise, self._whiskers, self._dots):
            self.plot.addItem(item)
        self.plot.setXRange(0, 100, padding=0.02)
        self.plot.setYRange(0, 100, padding=0.03)
        for side in ("left", "bottom"):
            self.plot.getAxis(side).setTicks([[(v, str(v)) for v in (0, 25, 50, 75, 100)]])
        self.apply_theme(theme)

    def show_model(self, model: RoundsModel) -> None:
        """Draw the bins."""
        self._bins = model.calibration()
        self.show_empty(not self._bins)
        self._draw_bins()
        self.describe("; ".join(map(_words, self._bins)) or tr("No data yet."))

    def key(self) -> Sequence[tuple[str, str]]:
        return ((self._theme.accepted_mtp, tr("MTP drafts")),)

    def paint_in(self, theme: Theme) -> None:
        self._promise.setPen(pg.mkPen(theme.border_strong, style=Qt.PenStyle.DotLine))
        self._draw_bins()

    def table(self) -> Table:
        names = ("bin", "draft_probability_mean", "accepted", "n", "share", "low_95", "high_95")
        rates = ((b.claimed, b.rate) for b in self._bins)
        return names, [(r.position, claimed, r.accepted, r.tests, r.share, r.low, r.high) for claimed, r in rates]

    def _draw_bins(self) -> None:
        x = np.array([100 * b.claimed for b in self._bins], dtype=np.float64)
        share, low, high = (
            np.array([100 * getattr(b.rate, part) for b in self._bins], dtype=np.float64)
            for part in ("share", "low", "high")
        )
        theme = self._theme
        brushes = [pg.mkBrush(theme.plain if b.rate.few else theme.accepted_mtp) for b in self._bins]
        self._whiskers.setData(x=x, y=share, top=high - share, bottom=share - low, pen=self.fine_pen(theme.text))
        self._dots.setData(x=x, y=share, brush=brushes)


def _words(one: CalibrationBin) -> str:
    claimed, share, tests = one.claimed, one.rate.share, one.rate.tests
    return tr("claimed {claimed:.0%}, accepted {share:.0%}, n={tests}", claimed=claimed, share=share, tests=tests)
