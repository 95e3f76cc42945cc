"""The memory panel: the budget, where the weights are now, and what disk, drafting and verifying did of late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QVBoxLayout, QWidget

from app.flow import FlowRow
from app.language import tr
from app.library.choice import size_text
from app.library.model_bar import FILTER
from app.residency.budget_view import BudgetView
from app.residency.glance import STATES, WORDS, Glance, counted, speed_text, summary
from app.residency.lanes import Lanes
from app.residency.lanes_model import LanesModel
from app.residency.plan_words import unit_details
from app.residency.plans import Plans
from app.residency.strip import CELL_H, CELL_W, Strip, paint_cell
from app.theme import GRID, Theme
from app.widgets import ScrollingPage, label, push, small_font
from engine import LoadProgress, Record

if TYPE_CHECKING:
    from engine import BudgetRange, KvCache, ModelInfo

_MANY = 100
"""Units of one state for which the key keeps room."""
Target = tuple[Path, Path | None]
"""A checkpoint, and the sidecar with it."""


class MemoryPanel(ScrollingPage):
    """Plans are worked out only while the panel can be seen; the strip and the lanes are drawn only then, too."""

    budget_chosen = Signal(object)
    """For the model in use: bytes, None for everything, or "auto"."""
    load_requested = Signal(object, object, object)  # Path, Path | None, budget

    def __init__(self, theme: Theme, plans: Plans | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settingsScroll")
        self.setAccessibleName(tr("Memory"))
        self.plans = plans or Plans(parent=self)
        self.plans.ready.connect(self._on_plans)
        self.plans.failed.connect(self._on_no_plan)
        self._in_use: Target | None = None
        self._kv_in_use: KvCache = "f32"
        self.kv_for_next: Callable[[], KvCache] = lambda: "f32"
        """What the next model that is loaded will store keys and values as."""
        self._planned: Target | None = None
        self._stale = False
        self.lanes_model = LanesModel()
        self.budget = BudgetView(theme)
        self.budget.chosen.connect(self._on_chosen)
        self.strip = Strip(theme)
        self.key = StripKey(theme)
        self.state, self.figures = label("", wrap=True), label("", "caption", wrap=True)
        self.lanes, self.last = Lanes(self.lanes_model, theme), label("", "caption", wrap=True)
        self.back = push(tr("Back to the model in use"), self._plan_in_use, kind="link")
        self._lay_out()
        self.show_glance(Glance(), 0.0)
        self.refresh()
        self._show_back()

    # What is shown

    def show_model(self, info: ModelInfo) -> None:
        """A model has been loaded."""
        self._in_use = Path(info.path), Path(info.sidecar) if info.sidecar else None
        self._kv_in_use = info.kv_cache
        self.lanes_model.clear()
        self._plan_in_use()

    @property
    def least_budget(self) -> int | None:
        """The smallest budget that works for what is planned; None if that is not known."""
        return self.budget.least_bytes

    @Slot()
    def plan_again(self) -> None:
        """Memory has changed: bring the plan in line, the slider too."""
        self._stale = True
        self._ask()

    def plan(self, path: Path, sidecar: Path | None = None) -> None:
        """Plan a checkpoint that need not be loaded."""
        self._planned = (path, sidecar)
        self._stale = True
        self._show_back()
        self._ask()

    def show_glance(self, glance: Glance, speed: float) -> None:
        """Where the weights are now; `speed` is what the disk delivers."""
        self.strip.show_glance(glance)
        self.key.show_glance(glance)
        self.state.setText(summary(glance))
        words = []
        if glance.units:
            words.append(tr("{size} of weights in memory", size=size_text(glance.memory_bytes)))
        if glance.streams:
            read = tr(
                "{read:,.2f} GB read so far, {wait:,.1f} s waited for", read=glance.bytes_read / 1e9, wait=glance.wait_s
            )
            words += [read, tr("now {speed}", speed=speed_text(speed))]
        self.figures.setText("; ".join(words))

    def show_progress(self, progress: LoadProgress) -> None:
        """How far taking over another budget has come."""
        if progress.total:
            sizes = {"done": size_text(progress.done), "total": size_text(progress.total)}
            self.figures.setText(tr("Reading what stays in memory: {done} of {total}", **sizes))
        else:
            self.figures.setText(tr("Reading what stays in memory"))

    def add_records(self, records: Sequence[Record]) -> None:
        """Count rounds; nothing is drawn."""
        self.lanes_model.add_records(records)

    def clear(self) -> None:
        """Forget the rounds."""
        self.lanes_model.clear()
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Draw new rounds, if somebody can see them."""
        self.lanes.refresh()
        self.last.setText(self.lanes_model.summary())

    def apply_theme(self, theme: Theme) -> None:
        for part in (self.budget, self.strip, self.key, self.lanes):
            part.apply_theme(theme)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()

    # Planning

    @Slot()
    def choose_folder(self) -> None:
        """Ask for a checkpoint folder to plan."""
        if folder := QFileDialog.getExistingDirectory(self, tr("Plan a checkpoint folder")):
            self.plan(Path(folder))

    @Slot()
    def choose_file(self) -> None:
        """Ask for a checkpoint file to plan."""
        path, _ = QFileDialog.getOpenFileName(self, tr("Plan a model file"), "", tr(FILTER))
        if path:
            self.plan(Path(path))

    @Slot()
    def _plan_in_use(self) -> None:
        self._planned = self._in_use
        self._stale = True
        self._show_back()
        self._ask()

    def _ask(self) -> None:
        if not self._stale or not self.isVisible():
            return
        self._stale = False
        if self._planned is None:
            self.plans.forget()
            self.budget.show_notice(tr("Load a model, or plan one before loading it."))
        else:
            if self.budget.plan is None or self.budget.path != self._planned[0]:
                name = self._planned[0].name
                self.budget.show_notice(tr("Planning {name}: reading headers and measuring the disk…", name=name))
            held = self.strip.glance.memory_bytes if self._planned == self._in_use else 0
            kv_cache = self._kv_in_use if self._planned == self._in_use else self.kv_for_next()
            self.plans.ask(*self._planned, held=held, kv_cache=kv_cache)

    @Slot(object)
    def _on_plans(self, plans: BudgetRange) -> None:
        if self._planned is None:
            return
        in_use = self._planned == self._in_use
        glance = self.strip.glance
        budget = plans.automatic.budget if not in_use else glance.memory_bytes if glance.streams else None
        name = self._planned[0].name
        action = tr("Use this budget") if in_use else tr("Load {name} with this budget", name=name)
        self.budget.show_plans(plans, budget, action)
        if in_use:
            self.strip.show_details({unit.name: unit_details(unit) for plan in plans.plans for unit in plan.units})

    @Slot(str)
    def _on_no_plan(self, problem: str) -> None:
        self.budget.show_notice(problem)

    @Slot(object)
    def _on_chosen(self, budget: object) -> None:
        if self._planned is None or self._planned == self._in_use:
            self.budget_chosen.emit(budget)
        else:
            self.load_requested.emit(*self._planned, budget)

    def _show_back(self) -> None:
        self.back.setVisible(self._in_use is not None and self._planned != self._in_use)

    # Layout

    def _lay_out(self) -> None:
        folder = push(tr("Folder…"), self.choose_folder, kind="link", name=tr("Plan a checkpoint folder"))
        file = push(tr("File…"), self.choose_file, kind="link", name=tr("Plan a model file"))
        plan_row = FlowRow((label(tr("Plan another:"), "caption"), folder, file, self.back))
        body = QWidget()
        body.setObjectName("settingsPanel")
        column = QVBoxLayout(body)
        column.setContentsMargins(GRID, GRID, GRID, GRID)
        column.setSpacing(GRID)
        column.addWidget(self.budget)
        column.addWidget(plan_row)
        column.addWidget(_group(tr("Where the weights are"), self.state, self.strip, self.key, self.figures))
        column.addWidget(_group(tr("Disk, draft and verify, round by round"), self.lanes, self.last))
        column.addStretch(1)
        self.setWidget(body)


class StripKey(QWidget):
    """What the cells mean, with how many there are."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._counts = Glance().counts()
        self.setAccessibleName(tr("Key to the cells"))

    def show_glance(self, glance: Glance) -> None:
        self._counts = glance.counts()
        self.setAccessibleDescription(", ".join(counted(state, count) for state, count in self._counts.items()))
        self.update()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Two rows of two."""
        return QSize(2 * self._item_width(), 2 * self._row_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self._item_width(), self.heightForWidth(self.width()))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return len(STATES) // self._columns(width) * self._row_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.setMinimumHeight(self.heightForWidth(self.width()))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def _columns(self, width: int) -> int:
        return 2 if width >= 2 * self._item_width() else 1

    def _item_width(self) -> int:
        metrics = QFontMetrics(small_font(self.font()))
        return CELL_W + 8 + max(metrics.horizontalAdvance(f"{tr(WORDS[state])}: {_MANY}") for state in STATES)

    def _row_height(self) -> int:
        return max(CELL_H, QFontMetrics(small_font(self.font())).height()) + 2

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(small_font(self.font()))
        columns, height = self._columns(self.width()), self._row_height()
        width = self.width() // columns
        for index, state in enumerate(STATES):
            left, top = (index % columns) * width + 1, (index // columns) * height
            paint_cell(painter, QRect(left, top + (height - CELL_H) // 2 + 2, CELL_W, CELL_H - 4), state, self._theme)
            painter.setPen(self._theme.muted)
            area = QRect(left + CELL_W + 6, top, width - CELL_W - 8, height)
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, f"{tr(WORDS[state])}: {self._counts[state]}")
        painter.end()


def _group(heading: str, *parts: QWidget) -> QFrame:
    card = QFrame()
    card.setObjectName("group")
    column = QVBoxLayout(card)
    column.setContentsMargins(12, 12, 12, 12)
    column.setSpacing(GRID)
    column.addWidget(label(heading, "heading", wrap=True))
    for part in parts:
        column.addWidget(part)
    return card
