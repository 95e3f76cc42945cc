"""Two runs in one plot: tokens over time, and acceptance by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from app.inspector.plot_card import PlotCard, Table
from app.inspector.rounds_model import FEW, PositionRate, RoundsModel
from app.language import mark, tr, trn
from app.theme import Theme
from engine import Round

NAMES = ("A", "B")


def run_colours(theme: Theme) -> tuple[str, str]:
    """The hues of run A and run B."""
    return theme.accepted_mtp, theme.refused


class ProgressOverlay(PlotCard):
    """Tokens written over the time of drafting and verifying."""

    title = mark("Tokens over time")
    x_label = mark("Seconds of drafting and verifying")
    y_label = mark("Tokens")
    reading = mark(
        "How far each run had come after how long. The steeper line is the faster run; a bend says where it changed."
    )
    empty = mark("Neither run has rounds")

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._lines = [pg.PlotDataItem() for _ in NAMES]
        self._data: list[tuple[list[float], list[int]]] = []
        for line in self._lines:
            self.plot.addItem(line)
        self.apply_theme(theme)

    def show_runs(self, runs: Sequence[Sequence[Round]]) -> None:
        """Draw both."""
        self._data = []
        for line, rounds in zip(self._lines, runs, strict=True):
            seconds = np.cumsum([0.0, *(r.draft_s + r.verify_s for r in rounds)])
            tokens = np.cumsum([0, *(len(r.committed) for r in rounds)])
            line.setData(seconds, tokens.astype(np.float64))
            self._data.append((seconds.tolist(), tokens.tolist()))
        self.show_empty(not any(runs))
        self.plot.setXRange(0, max(0.001, *(seconds[-1] for seconds, _ in self._data)), padding=0.02)
        self.fit_height(float(max(tokens[-1] for _, tokens in self._data)))
        ends = ((name, seconds[-1], tokens[-1]) for name, (seconds, tokens) in zip(NAMES, self._data, strict=True))
        self.describe("; ".join(_came_to(*end) for end in ends))

    def key(self) -> Sequence[tuple[str, str]]:
        return tuple(zip(run_colours(self._theme), NAMES, strict=True))

    def paint_in(self, theme: Theme) -> None:
        for line, colour in zip(self._lines, run_colours(theme), strict=True):
            line.setPen(self.fine_pen(colour))

    def table(self) -> Table:
        pairs = zip(NAMES, self._data, strict=False)
        rows = [(name, s, t) for name, (seconds, tokens) in pairs for s, t in zip(seconds, tokens, strict=True)]
        return ("run", "seconds", "tokens"), rows


class AcceptanceOverlay(PlotCard):
    """Acceptance at each position, side by side."""

    title = mark("Acceptance by position")
    x_label = mark("Draft position in the round")
    y_label = mark("Accepted")
    y_unit = "%"
    reading = mark(
        "Of the drafts tested at this position, how many were accepted; whiskers are 95 % intervals (Wilson), hatched "
        "bars have fewer than {few} tests. Where whiskers overlap, the difference may be chance."
    )
    reading_values: ClassVar = {"few": FEW}
    empty = mark("Nothing was drafted in either run")

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._bars = [pg.BarGraphItem(x=[], height=[], width=0.3, pen=None) for _ in NAMES]
        self._whiskers = pg.ErrorBarItem(beam=0.1)
        self._models = [RoundsModel() for _ in NAMES]
        for item in (*self._bars, self._whiskers):
            self.plot.addItem(item)
        self.plot.setYRange(0, 100, padding=0)
        self.apply_theme(theme)

    def show_runs(self, runs: Sequence[Sequence[Round]]) -> None:
        """Draw both."""
        for model, rounds in zip(self._models, runs, strict=True):
            model.clear()
            model.add_records(rounds)
        self._draw_bars()

    def key(self) -> Sequence[tuple[str, str]]:
        return tuple(zip(run_colours(self._theme), NAMES, strict=True))

    def paint_in(self, theme: Theme) -> None:
        self._whiskers.setData(pen=self.fine_pen(theme.text))
        self._draw_bars()

    def table(self) -> Table:
        names = ("run", "position", "accepted", "n", "share", "low_95", "high_95")
        rows = [(name, r.position, r.accepted, r.tests, r.share, r.low, r.high) for name, r in self._rates()]
        return names, rows

    def _draw_bars(self) -> None:
        x_all, rates_all = [], []
        for place, (bars, model) in enumerate(zip(self._bars, self._models, strict=True)):
            rates = model.positions()
            x = [r.position + (-0.16, 0.16)[place] for r in rates]
            colour = run_colours(self._theme)[place]
            styles = (Qt.BrushStyle.BDiagPattern if r.few else Qt.BrushStyle.SolidPattern for r in rates)
            brushes = [pg.QtGui.QBrush(pg.mkColor(colour), style) for style in styles]
            bars.setOpts(x=x, height=[100 * r.share for r in rates], brushes=brushes)
            x_all += x
            rates_all += rates
        share, low, high = (np.array([100 * getattr(r, part) for r in rates_all]) for part in ("share", "low", "high"))
        self._whiskers.setData(x=np.array(x_all), y=share, top=high - share, bottom=share - low)
        self.show_empty(not rates_all)
        if rates_all:
            last = max(r.position for r in rates_all)
            self.plot.setXRange(0.4, max(4, last) + 0.6, padding=0)
            self.plot.getAxis("bottom").setTicks([[(k, str(k)) for k in range(1, last + 1)]])
            self.describe("; ".join(_accepted_at(name, r) for name, r in self._rates()))

    def _rates(self) -> Iterator[tuple[str, PositionRate]]:
        """Each run's rates, with the run's name."""
        for name, model in zip(NAMES, self._models, strict=True):
            for rate in model.positions():
                yield name, rate


def _came_to(name: str, seconds: float, tokens: int) -> str:
    """How far a run came."""
    return trn(
        "run {name}: {n} token in {seconds:.2f} s",
        "run {name}: {n} tokens in {seconds:.2f} s",
        tokens,
        name=name,
        seconds=seconds,
    )


def _accepted_at(name: str, rate: PositionRate) -> str:
    """How many drafts were accepted at a position."""
    return tr(
        "run {name} position {position}: {share:.0%}, n={tests}",
        name=name,
        position=rate.position,
        share=rate.share,
        tests=rate.tests,
    )
