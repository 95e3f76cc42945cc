"""The plots over rounds: time, speed and draft length, each with a mark at the chosen round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.inspector.plot_card import PlotCard, Table
from app.inspector.rounds_model import RoundWindow
from app.language import mark, tr, trn
from app.theme import Theme

if TYPE_CHECKING:
    from app.inspector.columns import Floats

_GAPS_BELOW = 90
"""With fewer rounds than this, bars stand apart."""


_SMOOTH = 10
"""Rounds over which speed is averaged: single ones jump between one token and several."""


def _bar_width(count: int) -> float:
    return 0.8 if count < _GAPS_BELOW else 1.0


class RoundPlot(PlotCard):
    """Base of the plots whose axis is the round."""

    x_label = mark("Round")

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._window: RoundWindow | None = None
        self._mark = pg.InfiniteLine(angle=90)
        self._mark.setVisible(False)
        self.plot.addItem(self._mark, ignoreBounds=True)

    def show_rounds(self, window: RoundWindow) -> None:  # noqa: ARG002 - for subclasses
        """Draw a stretch of rounds."""
        raise LookupError(f"{type(self).__name__} draws no rounds")  # not translated: a mistake of the program

    def mark_round(self, number: int | None) -> None:
        """Show which round is chosen."""
        self._mark.setVisible(number is not None)
        if number is not None:
            self._mark.setValue(number)

    def paint_in(self, theme: Theme) -> None:
        self._mark.setPen(pg.mkPen(theme.accent, style=Qt.PenStyle.DashLine))


class TimePlot(RoundPlot):
    """Where each round's time went."""

    title = mark("Time per round")
    y_label = mark("Time")
    y_unit = "ms"
    reading = mark(
        "One bar per round: drafting, checking the drafts, and waiting for the disk. Lower is faster, but a higher bar "
        "may still pay: a round can give several tokens."
    )

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._bars = [pg.BarGraphItem(x=[], height=[], width=1, pen=None) for _ in range(3)]
        for bars in self._bars:
            self.plot.addItem(bars)
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
            self.describe(_mean_times(window))

    def key(self) -> Sequence[tuple[str, str]]:
        theme = self._theme
        return ((theme.draft, tr("draft")), (theme.verify, tr("verify")), (theme.disk, tr("disk wait")))

    def paint_in(self, theme: Theme) -> None:
        super().paint_in(theme)
        for bars, colour in zip(self._bars, (theme.draft, theme.verify, theme.disk), strict=True):
            bars.setOpts(brush=pg.mkBrush(colour))

    def table(self) -> Table:
        names = ("round", "draft_ms", "verify_ms", "disk_wait_ms")
        window = self._window
        if window is None:
            return names, ()
        columns = (window.number.astype(int), window.draft_ms, window.verify_ms, window.wait_ms)
        return names, list(zip(*(column.tolist() for column in columns), strict=True))


class LengthPlot(RoundPlot):
    """How many drafts each round had, and how many were accepted."""

    title = mark("Draft length")
    y_label = mark("Tokens")
    reading = mark(
        "Line: drafts proposed in the round. Filled: drafts accepted. The gap between them is work thrown away. Where "
        "the line is at 0, nothing was drafted."
    )

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._accepted = pg.BarGraphItem(x=[], height=[], width=1, pen=None)
        self._offered = pg.PlotDataItem()
        self.plot.addItem(self._accepted)
        self.plot.addItem(self._offered)
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
        self.describe(_mean_drafts(window))

    def key(self) -> Sequence[tuple[str, str]]:
        return ((self._theme.text, tr("proposed")), (self._theme.accepted_mtp, tr("accepted")))

    def paint_in(self, theme: Theme) -> None:
        super().paint_in(theme)
        self._accepted.setOpts(brush=pg.mkBrush(theme.accepted_mtp))
        self._offered.setPen(pg.mkPen(theme.text, width=1))

    def table(self) -> Table:
        names = ("round", "proposed", "accepted", "committed")
        window = self._window
        if window is None:
            return names, ()
        columns = (window.number, window.offered, window.accepted, window.emitted)
        return names, list(zip(*(column.astype(int).tolist() for column in columns), strict=True))


class SpeedPlot(RoundPlot):
    """Tokens per second, over a few rounds, beside plain decoding where it was measured."""

    title = mark("Speed")
    y_label = mark("Tokens/s")
    reading = mark(
        "Tokens per second, averaged over {rounds} rounds. The dotted line is plain decoding, once measured with "
        "the button under “Cost”: above it, drafting pays."
    )
    reading_values: ClassVar = {"rounds": _SMOOTH}

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._line = pg.PlotDataItem()
        self._plain = pg.InfiniteLine(angle=0)
        self._plain.setVisible(False)
        self._speeds = np.zeros(0)
        self.plot.addItem(self._line)
        self.plot.addItem(self._plain, ignoreBounds=True)
        self.apply_theme(theme)

    def show_rounds(self, window: RoundWindow) -> None:
        """Draw the newest rounds."""
        self._window = window
        count = len(window.number)
        self.show_empty(count == 0)
        self._speeds = smoothed(window.emitted, window.total_ms / 1e3)
        self._line.setData(window.number, self._speeds)
        if count:
            self.fit_rounds(window.number[-1])
            plain = self._plain.value() if self._plain.isVisible() else 0.0
            self.fit_height(max(float(self._speeds.max()), plain))
            self.describe(_speed_at_the_end(count, float(self._speeds[-1])))

    def show_plain(self, tokens_per_s: float | None) -> None:
        """The line of plain decoding."""
        self._plain.setVisible(tokens_per_s is not None)
        self._plain.setValue(tokens_per_s or 0.0)
        self.show_key()
        if self._window is not None:
            self.show_rounds(self._window)

    def key(self) -> Sequence[tuple[str, str]]:
        plain = ((self._theme.plain, tr("plain")),) if self._plain.isVisible() else ()
        return ((self._theme.accent, tr("with drafts")), *plain)

    def paint_in(self, theme: Theme) -> None:
        super().paint_in(theme)
        self._line.setPen(pg.mkPen(theme.accent, width=1))
        self._plain.setPen(pg.mkPen(theme.plain, style=Qt.PenStyle.DotLine))

    def table(self) -> Table:
        window = self._window
        if window is None:
            return ("round", "tokens_per_s"), ()
        pairs = zip(window.number.astype(int).tolist(), self._speeds.tolist(), strict=True)
        return ("round", "tokens_per_s"), list(pairs)


def _mean_times(window: RoundWindow) -> str:
    return trn(
        "Mean of the last {n} round: draft {draft:.1f} ms, verify {verify:.1f} ms, disk wait {wait:.1f} ms.",
        "Mean of the last {n} rounds: draft {draft:.1f} ms, verify {verify:.1f} ms, disk wait {wait:.1f} ms.",
        len(window.number),
        draft=window.draft_ms.mean(),
        verify=window.verify_ms.mean(),
        wait=window.wait_ms.mean(),
    )


def _mean_drafts(window: RoundWindow) -> str:
    return trn(
        "Mean of the last {n} round: {drafts:.1f} drafts, {accepted:.1f} accepted.",
        "Mean of the last {n} rounds: {drafts:.1f} drafts, {accepted:.1f} accepted.",
        len(window.number),
        drafts=window.offered.mean(),
        accepted=window.accepted.mean(),
    )


def _speed_at_the_end(rounds: int, tokens_per_s: float) -> str:
    return trn(
        "Tokens per second over the last {n} round: {speed:.1f} at the end.",
        "Tokens per second over the last {n} rounds: {speed:.1f} at the end.",
        rounds,
        speed=tokens_per_s,
    )


def smoothed(emitted: Floats, seconds: Floats) -> Floats:
    """Tokens per second over each round and those just before it."""
    tokens, time = (np.concatenate(([0.0], np.cumsum(column))) for column in (emitted, seconds))
    end = np.arange(1, len(tokens))
    start = np.maximum(0, end - _SMOOTH)
    elapsed = time[end] - time[start]
    speeds: Floats = np.divide(tokens[end] - tokens[start], elapsed, out=np.zeros(len(end)), where=elapsed > 0)
    return speeds
