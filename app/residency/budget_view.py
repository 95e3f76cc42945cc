"""The budget: a slider from the least that works to everything, with what each place on it would bring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QSlider, QVBoxLayout, QWidget

from app.flow import FlowRow
from app.language import tr
from app.library.choice import size_text
from app.residency.plan_words import assumed, automatic_text, beside, budget_text, expected, spent
from app.residency.speed_bars import SpeedBars
from app.theme import GRID, Theme
from app.widgets import label, push

if TYPE_CHECKING:
    from engine import BudgetRange, Plan


class BudgetView(QFrame):
    """Shows plans; `chosen` asks for one: bytes, None for everything, or "auto"."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("group")
        self._plans: BudgetRange | None = None
        self.title = label(tr("Memory for the weights"), "heading", wrap=True)
        self.value = label("", "value")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(tr("Memory budget"))
        self.slider.setToolTip(
            tr("How much memory the weights may take; what does not fit is read from disk as it is used")
        )
        self.slider.valueChanged.connect(self._show_plan)
        self.least, self.most = label("", "caption"), label("", "caption")
        self.spent, self.beside = label("", wrap=True), label("", "caption", wrap=True)
        self.expected, self.assumed = label("", wrap=True), label("", "caption", wrap=True)
        self.bars = SpeedBars(theme)
        self.bars_title = label(tr("Tokens/s by drafts a round"), "caption")
        self.apply = push(tr("Use this budget"), self._apply, kind="primary")
        self.automatic = push(tr("Automatic"), lambda: self.chosen.emit("auto"), kind="link")
        self.automatic.setToolTip(tr("Take what is free when the model is loaded, less a margin"))
        self._body = QWidget()
        self.notice = label("", "caption", wrap=True)
        self._lay_out()
        self.show_notice(tr("Load a model, or plan one before loading it."))

    @property
    def plan(self) -> Plan | None:
        """The plan that the slider stands on."""
        return None if self._plans is None else self._plans.plans[self.slider.value()]

    @property
    def path(self) -> Path | None:
        """What the plans are for."""
        return None if self._plans is None else self._plans.path

    @property
    def least_bytes(self) -> int | None:
        """The smallest budget that works; None without plans."""
        return None if self._plans is None else self._plans.plans[0].minimum

    def show_notice(self, sentence: str) -> None:
        """Say why there is no plan to show."""
        self._plans = None
        self.notice.setText(sentence)
        self.notice.show()
        self._body.hide()

    def show_plans(self, plans: BudgetRange, budget: int | None, action: str) -> None:
        """Show plans with the slider at `budget` bytes (None: everything); `action` is what the button does."""
        self._plans = plans
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(plans.plans) - 1)
            self.slider.setValue(plans.nearest(budget))
        self.least.setText(tr("Least: {size}", size=size_text(plans.plans[0].minimum)))
        self.most.setText(tr("Everything: {size}", size=size_text(plans.plans[-1].everything)))
        self.assumed.setText(assumed(plans.machine))
        self.apply.setText(action)
        self.apply.setAccessibleName(action)
        self.automatic.setText(automatic_text(plans))
        self.notice.hide()
        self._body.show()
        self._show_plan()

    def show_busy(self, busy: bool) -> None:
        """Whether a budget is being taken over, so that no other can be asked for."""
        self.apply.setEnabled(not busy)
        self.automatic.setEnabled(not busy)

    def apply_theme(self, theme: Theme) -> None:
        self.bars.apply_theme(theme)

    @Slot()
    def _show_plan(self) -> None:
        plan = self.plan
        if plan is None:
            return
        self.value.setText(budget_text(plan))
        self.spent.setText(spent(plan))
        self.beside.setText(beside(plan))
        self.expected.setText(expected(plan))
        self.bars.show_predictions(plan.predictions)
        self.slider.setAccessibleDescription(f"{self.value.text()}. {self.spent.text()} {self.expected.text()}")

    @Slot()
    def _apply(self) -> None:
        if self.plan is not None:
            self.chosen.emit(self.plan.budget)

    def _lay_out(self) -> None:
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(GRID // 2)
        body.addWidget(self.value)
        body.addWidget(self.slider)
        body.addWidget(FlowRow((self.least, self.most), "apart"))
        for part in (self.spent, self.beside, self.expected, self.bars_title, self.bars, self.assumed):
            body.addWidget(part)
        body.addSpacing(GRID // 2)
        body.addWidget(FlowRow((self.apply, self.automatic), "apart"))
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(GRID)
        column.addWidget(self.title)
        column.addWidget(self.notice)
        column.addWidget(self._body)
