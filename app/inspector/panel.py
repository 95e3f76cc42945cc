"""The inspector: figures, the round scrubber, plots that move while a reply is written, and the rounds as a table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QTabWidget, QVBoxLayout, QWidget

from app.flow import FlowRow
from app.inspector.pace import Pace
from app.inspector.round_table import RoundTable
from app.inspector.rounds_model import SHOWN_ROUNDS, Headline, RoundsModel, RoundWindow
from app.inspector.scrubber import Scrubber
from app.language import tr
from app.theme import Theme, current_theme
from app.widgets import ScrollingPage, label, named
from engine import Record, Round

if TYPE_CHECKING:  # with it comes pyqtgraph, for which the window's first paint does not wait
    from app.inspector.plot_stack import PlotStack

_NOTHING = "–"
_LONG = "000.0"
_APART_MS = 12
"""Between one plot and the next while a reply streams: drawn in one go they hold up the window."""
_ABOUT = SHOWN_ROUNDS // 4
"""Rounds that the plots show after a chosen one."""


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

    def sizeHint(self) -> QSize:
        """Never narrower than a long number, so that figures keep their places while they change."""
        return super().sizeHint().expandedTo(QSize(self.value.fontMetrics().horizontalAdvance(_LONG), 0))

    def show_value(self, text: str) -> None:
        """Put in another number."""
        if text != self.value.text():
            self.value.setText(text)
            self.setAccessibleName(f"{self.caption.text()}: {text}")


class InspectorPanel(QWidget):
    """Takes records at any rate; draws only in `refresh`, and then only what changed, and only when it can be seen."""

    round_chosen = Signal(object)
    """The `Round` that a person went to here, or None for all of them."""
    measure_requested = Signal()
    """Plain decoding is to be measured."""
    plots_made = Signal()

    def __init__(self, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme = theme or current_theme()
        self.setAccessibleName(tr("Inspector"))
        self.model = RoundsModel()
        self._drawn = -1
        self._due: deque[Callable[[], None]] = deque()
        """What is still to be drawn of the last `refresh_soon`."""
        self._apart = QTimer(self, interval=_APART_MS)
        self._apart.timeout.connect(self._draw_next)
        self._pace = Pace()
        self._later = QTimer(self, singleShot=True)
        self._later.timeout.connect(self.refresh_soon)
        self.redraws = 0
        """How often the plots were drawn."""
        self.rounds = Figure(tr("rounds"), tr("Verification passes since the chat began"))
        per_round = tr("Accepted drafts and the model's own token; 1.0 is plain decoding")
        self.per_round = Figure(tr("tokens per round"), per_round)
        self.acceptance = Figure(tr("accepted"), tr("Accepted share of the drafts that were tested"))
        self.speed = Figure(tr("tokens/s"), tr("Tokens per second of drafting and verifying"))
        self.scrubber = Scrubber(self.model)
        self.table = RoundTable(self.model)
        self._theme = theme
        self._stack: PlotStack | None = None
        self._prepared = False
        self._plain: float | None = None
        self._button = False, ""
        self._lay_out()
        self.scrubber.moved.connect(self._on_scrubbed)
        self.table.round_chosen.connect(self.scrubber.go)
        self.tabs.currentChanged.connect(self._redraw)
        self.apply_theme(theme)

    # The plots: made when they are wanted, or when the window has time

    @property
    def plots(self) -> PlotStack:
        """The plots; those that are missing are made now."""
        stack = self._stack or self._begin_plots()
        while not stack.whole:
            self._grow()
        return stack

    @Slot()
    def prepare(self) -> None:
        """Make the plots, before there is anything to plot, one a turn of the event loop; if hidden, once shown."""
        self._prepared = True
        if self._whole is None and self.isVisible() and self._make_next not in self._due:
            self._due.append(self._make_next)
            self._apart.start()

    def complete(self) -> None:
        """Draw everything that can be seen now, also plots without data."""
        if self.isVisible():
            late = self._whole is None
            if self.plots.whole and late:  # they lack what was drawn before they were there
                self._redraw()
            else:
                self.refresh()

    @property
    def _whole(self) -> PlotStack | None:
        """The plots if all are there."""
        return self._stack if self._stack is not None and self._stack.whole else None

    def _make_next(self) -> None:
        if self._whole is not None:
            return
        if self._stack is None:
            self._begin_plots()
        else:
            self._grow()
        self._due.append(self._draw_first if self._whole is not None else self._make_next)

    def _begin_plots(self) -> PlotStack:
        from app.inspector.plot_stack import PlotStack

        self._stack = PlotStack(self.model, self._theme)
        self._stack.measure_requested.connect(self.measure_requested)
        self._stack.choice_changed.connect(self._redraw)
        self._stack.painted_stale.connect(self._draw_stale, Qt.ConnectionType.QueuedConnection)
        self._scroll.setWidget(self._stack)
        return self._stack

    def _grow(self) -> None:
        """One more plot; the last one brings what was said before it was there."""
        assert self._stack is not None
        if self._stack.grow():
            self.show_button(*self._button)
            self.show_plain(self._plain)
            self._stack.mark_round(self.scrubber.number)
            self.plots_made.emit()

    def _draw_first(self) -> None:
        if self.model.rounds:
            self._drawn = -1
            self.refresh_soon()

    def add_records(self, records: Sequence[Record]) -> None:
        """Count rounds; nothing is drawn."""
        self.model.add_records(records)

    def clear(self) -> None:
        """Forget everything."""
        self.model.clear()
        self.show_plain(None)
        self.choose(None)
        self.refresh()

    def refresh(self) -> None:
        """Draw at once, if something changed and somebody can see it."""
        if self._drawn != self.model.version and self.isVisible() and not self.window().isMinimized():
            self._redraw()

    @Slot()
    def refresh_soon(self) -> None:
        """The same, one part after the other with turns of the event loop between, and not so often that the engine
        would feel it; parts out of sight are left out."""
        seen = self._drawn != self.model.version and self.isVisible() and not self.window().isMinimized()
        if not seen or self._due or self._later.isActive():
            return
        if rest := self._pace.rest_ms():
            self._later.start(rest)
            return
        self._pace.begin()
        self._drawn = self.model.version
        self.redraws += 1
        self._due.append(self._draw_figures)
        if self.tabs.currentWidget() is self.table:
            self._due.append(self._draw_table)
        else:
            self._plots_due()
        self._apart.start()

    @Slot()
    def catch_up(self) -> None:
        """The reply has ended: draw its last rounds without regard to the engine."""
        self._pace.hurry()
        self._later.stop()
        self.refresh_soon()

    def _plots_due(self) -> None:
        if (stack := self._whole) is None:
            if self.model.rounds:
                self._due.append(self._make_next)
            return
        window = self._shown_window()
        for card in stack.in_sight():
            self._due.append(lambda card=card: stack.draw(card, window))  # type: ignore[misc]

    def choose(self, record: Round | None) -> None:
        """Show a round that was chosen elsewhere; nothing if it is not among these."""
        number = None if record is None else self.model.number_of(record)
        if number != self.scrubber.number:
            self.scrubber.show_number(number)
            self._show_choice()

    def show_plain(self, tokens_per_s: float | None) -> None:
        """What plain decoding was measured to do on this computer."""
        self._plain = tokens_per_s
        if self._whole is not None:
            self._whole.cost.show_plain(tokens_per_s)
            self._whole.speeds.show_plain(tokens_per_s)

    def show_button(self, enabled: bool, words: str = "") -> None:
        """Whether plain decoding can be measured now, or what is going on instead."""
        self._button = enabled, words
        if self._whole is not None:
            self._whole.cost.show_button(enabled, words)

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        sheet = (
            f'QLabel[type="caption"] {{ color: {theme.muted}; }}'  # not translated: CSS
            f" #inspectorBody {{ background: {theme.surface}; }}"
            f" #inspectorScroll {{ background: {theme.surface}; border: none; }}"
        )
        if sheet != self.styleSheet():
            self.setStyleSheet(sheet)
        self.scrubber.apply_theme(theme)
        if self._stack is not None:
            self._stack.apply_theme(theme)

    def showEvent(self, event: QShowEvent) -> None:
        """What came while hidden is drawn now."""
        super().showEvent(event)
        if self._whole is not None:
            self.refresh()
        elif self._prepared or self.model.rounds:
            self.prepare()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More plots may be in sight now."""
        super().resizeEvent(event)
        if self._whole is not None:
            QTimer.singleShot(0, self, self._draw_stale)

    @Slot(object)
    def _on_scrubbed(self, number: int | None) -> None:
        self._show_choice()
        self.round_chosen.emit(None if number is None else self.model.log[number - 1])

    def _show_choice(self) -> None:
        """Mark the chosen round in every part."""
        number = self.scrubber.number
        if self._stack is not None:
            self._stack.mark_round(number)
        if self.tabs.currentWidget() is self.table:
            self.table.show_number(number)
        elif self.isVisible():
            self._draw_rounds()

    @Slot()
    def _redraw(self) -> None:
        self._drawn = self.model.version
        self.redraws += 1
        self._draw_figures()
        if self.tabs.currentWidget() is self.table:
            self._draw_table()
            return
        if self._stack is None and not self.model.rounds:
            return
        stack, window = self.plots, self._shown_window()
        for card in stack.cards:
            stack.draw(card, window)

    @Slot()
    def _draw_next(self) -> None:
        if self._due:
            self._due.popleft()()
        else:  # a turn after the last part, which has been painted by now
            self._apart.stop()
            self._pace.end()
            if self._drawn != self.model.version:  # rounds came meanwhile
                self._later.start(self._pace.rest_ms())

    @Slot()
    def _draw_stale(self) -> None:
        """Plots that came into sight by scrolling."""
        if (stack := self._whole) is not None and (cards := stack.came_into_sight()):
            window = self._shown_window()
            for card in cards:
                stack.draw(card, window)

    def _draw_figures(self) -> None:
        self._show_headline(self.model.headline())
        self.scrubber.refresh()

    def _draw_table(self) -> None:
        self.table.rows.refresh()
        self.table.show_number(self.scrubber.number)

    def _draw_rounds(self) -> None:
        window = self._shown_window()
        for plot in self.plots.over_rounds:
            plot.show_rounds(window)

    def _shown_window(self) -> RoundWindow:
        """The newest rounds, or those about the chosen one."""
        number = self.scrubber.number
        return self.model.window(last=None if number is None else number + _ABOUT)

    def _show_headline(self, figures: Headline) -> None:
        self.rounds.show_value(f"{figures.rounds:,}".replace(",", "\u202f") if figures.rounds else _NOTHING)
        self.per_round.show_value(_number(figures.tokens_per_round, 2))
        acceptance = figures.acceptance
        self.acceptance.show_value(_NOTHING if acceptance is None else f"{100 * acceptance:.0f} %")
        self.speed.show_value(_number(figures.tokens_per_s, 1))

    def _lay_out(self) -> None:
        figures = FlowRow((self.rounds, self.per_round, self.acceptance, self.speed), "columns", 12)
        figures.setContentsMargins(12, 10, 12, 6)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName(tr("Plots or rounds"))
        self.tabs.addTab(self._page(), tr("Plots"))
        self.tabs.addTab(self.table, tr("Rounds"))
        body = QFrame()
        body.setObjectName("inspectorBody")
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(figures)
        column.addWidget(self.scrubber)
        column.addWidget(self.tabs, 1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(body)

    def _page(self) -> ScrollingPage:
        """Where the plots go."""
        soon = named(label(tr("The plots fill while a reply is written."), "caption"), "inspectorBody")
        soon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._scroll = named(ScrollingPage(), "inspectorScroll")
        self._scroll.setAccessibleName(tr("Plots"))
        self._scroll.setWidget(soon)
        self._scroll.verticalScrollBar().valueChanged.connect(self._draw_stale)
        return self._scroll


def _number(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else f"{value:.{digits}f}"
