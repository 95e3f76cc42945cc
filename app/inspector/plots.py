"""The three plots: time per round, acceptance per position, draft length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QComboBox, QWidget

from app.inspector.plot_card import PlotCard, Table
from app.inspector.rounds_model import FEW, PositionRate, Rate, RoundsModel, RoundWindow, SourceFilter
from app.theme import Theme

_GAPS_BELOW = 90
"""With fewer rounds than this, bars stand apart."""


def _bar_width(count: int) -> float:
    return 0.8 if count < _GAPS_BELOW else 1.0


class TimePlot(PlotCard):
    """Where each round's time went."""

    title = "Time per round"
    x_label = "Round"
    y_label = "Time"
    y_unit = "ms"
    reading = "One bar per round: drafting, checking the drafts, and waiting for the disk. Lower is faster."

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._bars = [pg.BarGraphItem(x=[], height=[], width=1, pen=None) for _ in range(3)]
        for bars in self._bars:
            self.plot.addItem(bars)
        self._window: RoundWindow | None = None
        self.apply_theme(theme)

    def show_rounds(self, window: RoundWindow) -> None:
        """Draw the newest rounds."""
        self._window = window
        count = len(window.number)
        self.show_empty(count == 0)
        below = np.zeros(count)
        for bars, values in zip(self._bars, (window.draft_ms, window.verify_ms, window.wait_ms), strict=True):
            bars.setOpts(x=window.number, y0=below, height=values, width=_bar_width(count))
            below = below + values
        if count:
            self.fit_rounds(window.number[-1])
            self.fit_height(float(below.max()))
            self.describe(
                f"Mean of the last {count} rounds: draft {window.draft_ms.mean():.1f} ms, "
                f"verify {window.verify_ms.mean():.1f} ms, disk wait {window.wait_ms.mean():.1f} ms."
            )

    def key(self) -> Sequence[tuple[str, str]]:
        theme = self._theme
        return ((theme.draft, "draft"), (theme.verify, "verify"), (theme.disk, "disk wait"))

    def paint_in(self, theme: Theme) -> None:
        for bars, colour in zip(self._bars, (theme.draft, theme.verify, theme.disk), strict=True):
            bars.setOpts(brush=pg.mkBrush(colour))

    def table(self) -> Table:
        names = ("round", "draft_ms", "verify_ms", "disk_wait_ms")
        window = self._window
        if window is None:
            return names, ()
        columns = (window.number.astype(int), window.draft_ms, window.verify_ms, window.wait_ms)
        return names, list(zip(*(column.tolist() for column in columns), strict=True))


class AcceptancePlot(PlotCard):
    """How good the drafts are at each position."""

    title = "Acceptance"
    x_label = "Draft position in the round"
    y_label = "Accepted"
    y_unit = "%"
    reading = (
        "How often the 1st, 2nd, … draft of a round was accepted; the whisker is the 95 % interval (Wilson), "
        f"grey means fewer than {FEW} tests. “If tested” counts drafts whose forerunners were accepted, "
        "“of proposed” counts every draft."
    )

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.rate = _choice("Which rate", (("if tested", "conditional"), ("of proposed", "survival")))
        self.source = _choice("Whose drafts", (("all", "all"), ("MTP", "mtp"), ("n-gram", "ngram")))
        for box in (self.source, self.rate):
            self.header.addWidget(box)
        self._bars = pg.BarGraphItem(x=[], height=[], width=0.62, pen=None)
        self._whiskers = pg.ErrorBarItem(beam=0.16)
        self._rates: list[PositionRate] = []
        self.plot.addItem(self._bars)
        self.plot.addItem(self._whiskers)
        self.plot.setYRange(0, 100, padding=0)
        self.plot.getAxis("bottom").setHeight(3 * self.fontMetrics().height() + 6)
        self.plot.getAxis("left").setTicks([[(v, str(v)) for v in (0, 25, 50, 75, 100)]])
        self.apply_theme(theme)

    def show_model(self, model: RoundsModel) -> None:
        """Draw the rates that the two choices ask for."""
        rate: Rate = self.rate.currentData()
        source: SourceFilter = self.source.currentData()
        self._rates = model.positions(rate, source)
        self.show_empty(not self._rates)
        x = np.array([r.position for r in self._rates], dtype=np.float64)
        share = np.array([100 * r.share for r in self._rates])
        low = np.array([100 * r.low for r in self._rates])
        high = np.array([100 * r.high for r in self._rates])
        self._bars.setOpts(x=x, height=share, brushes=[pg.mkBrush(self._colour(r)) for r in self._rates])
        self._whiskers.setData(x=x, y=share, top=high - share, bottom=share - low, pen=pg.mkPen(self._theme.text))
        if self._rates:
            self.plot.setXRange(0.4, max(4.0, x[-1]) + 0.6, padding=0)
            self.plot.getAxis("bottom").setTicks([[(r.position, f"{r.position}\nn={r.tests}") for r in self._rates]])
            self.describe("; ".join(f"position {r.position}: {r.share:.0%}, n={r.tests}" for r in self._rates))

    def paint_in(self, theme: Theme) -> None:
        self._bars.setOpts(brushes=[pg.mkBrush(self._colour(r)) for r in self._rates])
        self._whiskers.setData(pen=pg.mkPen(theme.text))

    def table(self) -> Table:
        names = ("position", "accepted", "n", "share", "low_95", "high_95")
        return names, [(r.position, r.accepted, r.tests, r.share, r.low, r.high) for r in self._rates]

    def _colour(self, rate: PositionRate) -> str:
        if rate.few:
            return self._theme.plain
        return self._theme.accepted_ngram if self.source.currentData() == "ngram" else self._theme.accepted_mtp


class LengthPlot(PlotCard):
    """How many drafts each round had, and how many were accepted."""

    title = "Draft length"
    x_label = "Round"
    y_label = "Tokens"
    reading = "Line: drafts proposed in the round. Filled: drafts accepted. The gap between them is work thrown away."

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._accepted = pg.BarGraphItem(x=[], height=[], width=1, pen=None)
        self._offered = pg.PlotDataItem()
        self.plot.addItem(self._accepted)
        self.plot.addItem(self._offered)
        self._window: RoundWindow | None = None
        self.apply_theme(theme)

    def show_rounds(self, window: RoundWindow) -> None:
        """Draw the newest rounds."""
        self._window = window
        count = len(window.number)
        self.show_empty(count == 0)
        self._accepted.setOpts(x=window.number, height=window.accepted, width=_bar_width(count))
        if not count:
            self._offered.setData([], [])
            return
        edges = np.append(window.number - 0.5, window.number[-1] + 0.5)
        self._offered.setData(np.repeat(edges, 2)[1:-1], np.repeat(window.offered, 2))
        self.fit_rounds(window.number[-1])
        self.fit_height(max(1.0, float(window.offered.max())))
        self.describe(
            f"Mean of the last {count} rounds: {window.offered.mean():.1f} drafts, "
            f"{window.accepted.mean():.1f} accepted."
        )

    def key(self) -> Sequence[tuple[str, str]]:
        return ((self._theme.text, "proposed"), (self._theme.accepted_mtp, "accepted"))

    def paint_in(self, theme: Theme) -> None:
        self._accepted.setOpts(brush=pg.mkBrush(theme.accepted_mtp))
        self._offered.setPen(pg.mkPen(theme.text, width=1))

    def table(self) -> Table:
        names = ("round", "proposed", "accepted", "committed")
        window = self._window
        if window is None:
            return names, ()
        columns = (window.number, window.offered, window.accepted, window.emitted)
        return names, list(zip(*(column.astype(int).tolist() for column in columns), strict=True))


def _choice(name: str, items: Sequence[tuple[str, str]]) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    for words, value in items:
        box.addItem(words, value)
    return box
