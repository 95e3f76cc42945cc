"""The settings of a reply: how tokens are chosen, and how they are drafted. Each with a line that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSignalBlocker, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.chat.preset_bar import PresetBar
from app.flow import FlowRow
from app.language import mark, tr
from app.settings import Preset, ReplyChoices
from app.theme import GRID
from app.widgets import ScrollingPage, label, named, push
from engine import DraftOptions, SamplingOptions

if TYPE_CHECKING:
    from engine import ModelInfo

DRAFTERS = (
    ("mtp", mark("MTP layer")),
    ("ngram", mark("Lookup in the text")),
    ("mtp+ngram", mark("MTP and lookup")),
    ("none", mark("Nothing (plain)")),
)
POLICIES = (("fixed", mark("Fixed")), ("adaptive", mark("Adaptive")), ("cost-aware", mark("Cost-aware")))
ELSEWHERE = mark(
    "Lookup also drafts from what was said in your other chats. The model reads nothing of them and checks every draft,"
    " so replies stay the same."
)
THINKING = ((None, mark("As the model likes")), (True, mark("On")), (False, mark("Off")))
WHO_DRAFTS = mark("Who proposes the tokens that the model then checks.")
WHETHER_THINKS = mark("Whether the model reasons before it answers.")


class Group(QFrame):
    """A card of settings with a heading and its own way back to what is recommended."""

    reset_requested = Signal()

    def __init__(self, heading: str) -> None:
        super().__init__()
        self.setObjectName("group")
        name = tr("Reset {group} to recommended", group=heading.lower())
        self.reset = push(tr("Reset to recommended"), self.reset_requested.emit, kind="link", name=name)
        self._controls: list[QWidget] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(GRID)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(0, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(GRID)
        column.addWidget(FlowRow((label(heading, "heading"), self.reset), "apart"))
        column.addLayout(self._grid)

    def changeEvent(self, event: QEvent) -> None:
        """Controls grow with the font, all alike."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            for control in self._controls:
                control.setFixedWidth(_control_width(self.font()))

    def add(self, name: str, control: QWidget, explanation: str) -> QLabel:
        """Add a setting; returns the label of its explanation."""
        row = self._grid.rowCount()
        title, why = label(name, wrap=True), label(explanation, "caption", wrap=True)
        title.setBuddy(control)
        control.setAccessibleName(name)
        control.setAccessibleDescription(explanation)
        control.setFixedWidth(_control_width(self.font()))
        self._controls.append(control)
        self._grid.addWidget(title, row, 0)
        self._grid.addWidget(control, row, 1)
        self._grid.addWidget(why, row + 1, 0, 1, 2)
        self._grid.setRowMinimumHeight(row + 2, GRID // 2)
        return why


def _control_width(font: QFont) -> int:
    return max(19 * GRID, round(9.5 * QFontMetrics(font).height()))


def _whole(low: int, high: int, special: str = "") -> QSpinBox:
    box = QSpinBox(minimum=low, maximum=high)
    box.setSpecialValueText(special)
    _inset(box)
    return box


def _share(low: float, high: float, step: float) -> QDoubleSpinBox:
    box = QDoubleSpinBox(minimum=low, maximum=high, singleStep=step, decimals=2)
    _inset(box)
    return box


def _inset(box: QAbstractSpinBox) -> None:
    """Style sheets do not move the text of a spin box away from its edge."""
    edit = box.findChild(QLineEdit)
    if edit is not None:
        edit.setTextMargins(GRID, 0, 0, 0)


def _list(entries: tuple[tuple[object, str], ...]) -> QComboBox:
    box = QComboBox()
    for value, text in entries:
        box.addItem(tr(text), value)
    return box


class SamplingPanel(ScrollingPage):
    """Edits `ReplyChoices`; `changed` follows every edit."""

    changed = Signal(object)  # ReplyChoices

    def __init__(self, choices: ReplyChoices, presets: Sequence[Preset] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settingsScroll")
        self.presets = PresetBar(presets, choices)
        self.choices = choices
        self._recommended = SamplingOptions()
        page = named(QWidget(), "settingsPanel")
        column = QVBoxLayout(page)
        column.setContentsMargins(GRID, GRID, GRID, GRID)
        column.setSpacing(GRID)
        column.addWidget(self.presets)
        for group in (self._drafting_group(), self._sampling_group(), self._reply_group()):
            column.addWidget(group)
        column.addStretch(1)
        self.setWidget(page)
        self._show()
        self._connect()

    def _drafting_group(self) -> Group:
        group = Group(tr("Drafting"))
        self.drafter, self.tokens, self.policy = _list(DRAFTERS), _whole(0, 14, tr("0 (off)")), _list(POLICIES)
        self.drafter_note = group.add(tr("Drafter"), self.drafter, tr(WHO_DRAFTS))
        why = tr("Proposals a round: more pay off only while most are accepted.")
        group.add(tr("Draft tokens"), self.tokens, why)
        why = tr("Whether that number stays, follows acceptance, or what each costs.")
        group.add(tr("Length policy"), self.policy, why)
        self.elsewhere = QCheckBox(tr("Look there too"))
        group.add(tr("Other chats"), self.elsewhere, tr(ELSEWHERE))
        group.reset_requested.connect(self._reset_drafting)
        return group

    def _sampling_group(self) -> Group:
        group = Group(tr("Sampling"))
        self.temperature, self.top_k = _share(0, 2, 0.1), _whole(0, 1000, tr("off"))
        self.top_p, self.min_p = _share(0.01, 1, 0.05), _share(0, 0.99, 0.01)
        self.seed, self.new_seed = _whole(0, 2**31 - 1), QCheckBox(tr("New seed for each reply"))
        self.new_seed.setAccessibleName(self.new_seed.text())
        why = tr("0 always takes the likeliest token; higher is more varied.")
        group.add(tr("Temperature"), self.temperature, why)
        group.add(tr("Top-k"), self.top_k, tr("Choose among the k likeliest tokens only."))
        why = tr("Choose among the likeliest tokens that together reach this probability.")
        group.add(tr("Top-p"), self.top_p, why)
        why = tr("Leave out tokens less likely than this share of the likeliest.")
        group.add(tr("Min-p"), self.min_p, why)
        group.add(tr("Seed"), self.seed, tr("The same seed and settings give the same reply again."))
        layout = group.layout()
        assert layout is not None
        layout.addWidget(self.new_seed)
        group.reset_requested.connect(self._reset_sampling)
        return group

    def _reply_group(self) -> Group:
        group = Group(tr("Reply"))
        self.limit, self.thinking = _whole(1, 262_144), _list(THINKING)
        why = tr("The reply is cut off here if it has not ended by itself.")
        group.add(tr("Most new tokens"), self.limit, why)
        self.thinking_note = group.add(tr("Thinking"), self.thinking, tr(WHETHER_THINKS))
        self.think_budget = _whole(0, 262_144, tr("no limit"))
        why = tr("Thinking is closed after so many tokens, and the answer begins.")
        group.add(tr("Think budget"), self.think_budget, why)
        group.reset_requested.connect(self._reset_reply)
        return group

    def _connect(self) -> None:
        for box in (self.temperature, self.top_k, self.top_p, self.min_p, self.seed):
            box.valueChanged.connect(self._on_edit)
        for box in (self.tokens, self.limit, self.think_budget):
            box.valueChanged.connect(self._on_edit)
        for combo in (self.drafter, self.policy, self.thinking):
            combo.currentIndexChanged.connect(self._on_edit)
        for check in (self.new_seed, self.elsewhere):
            check.toggled.connect(self._on_edit)
        self.presets.chosen.connect(self._reset)

    def show_model(self, info: ModelInfo) -> None:
        """Take over what a model recommends and what it cannot do."""
        self._recommended = info.recommended
        why = info.draft_note or tr("This checkpoint has no MTP layer; add a sidecar to have one.")
        self.drafter_note.setText(why if info.mtp == "none" else tr(WHO_DRAFTS))
        for control in (self.thinking, self.think_budget):
            control.setEnabled(info.thinking)
        self.thinking_note.setText(tr(WHETHER_THINKS) if info.thinking else tr("This model does not think aloud."))
        self._show()

    def _show(self) -> None:
        """Show the choices without taking that for an edit."""
        blocker = QSignalBlocker(self)
        sampling, draft = self.choices.sampling or self._recommended, self.choices.draft
        self._silent = True
        self.temperature.setValue(sampling.temperature)
        self.top_k.setValue(sampling.top_k)
        self.top_p.setValue(sampling.top_p)
        self.min_p.setValue(sampling.min_p)
        self.seed.setValue(min(sampling.seed, self.seed.maximum()))
        self.new_seed.setChecked(self.choices.new_seed)
        self.drafter.setCurrentIndex(self.drafter.findData(draft.drafter))
        self.tokens.setValue(draft.tokens)
        self.policy.setCurrentIndex(self.policy.findData(draft.length))
        self.elsewhere.setChecked(self.choices.search_chats)
        self.limit.setValue(self.choices.max_new_tokens)
        self.thinking.setCurrentIndex(self.thinking.findData(self.choices.thinking))
        self.think_budget.setValue(self.choices.think_budget or 0)
        self._silent = False
        del blocker
        self.presets.show_choices(self.choices)
        self._enable()

    def _enable(self) -> None:
        drafts = self.choices.draft.drafter != "none"
        self.tokens.setEnabled(drafts)
        self.policy.setEnabled(drafts)
        self.elsewhere.setEnabled("ngram" in self.choices.draft.drafter)
        samples = self.temperature.value() > 0
        for control in (self.top_k, self.top_p, self.min_p, self.new_seed):
            control.setEnabled(samples)
        self.seed.setEnabled(samples and not self.new_seed.isChecked())

    @Slot()
    def _on_edit(self) -> None:
        if self._silent:
            return
        before = self.choices.sampling or self._recommended
        sampling = replace(
            before,
            temperature=round(self.temperature.value(), 2),
            top_k=self.top_k.value(),
            top_p=round(self.top_p.value(), 2),
            min_p=round(self.min_p.value(), 2),
            seed=self.seed.value(),
        )
        draft = DraftOptions(self.drafter.currentData(), self.tokens.value(), self.policy.currentData())
        self._choose(
            ReplyChoices(
                sampling=sampling if sampling != before else self.choices.sampling,
                new_seed=self.new_seed.isChecked(),
                max_new_tokens=self.limit.value(),
                thinking=self.thinking.currentData(),
                think_budget=self.think_budget.value() or None,
                draft=draft,
                search_chats=self.elsewhere.isChecked(),
            )
        )

    def _choose(self, choices: ReplyChoices) -> None:
        self.choices = choices
        self.presets.show_choices(choices)
        self._enable()
        self.changed.emit(choices)

    @Slot()
    def _reset_drafting(self) -> None:
        self._reset(replace(self.choices, draft=DraftOptions(), search_chats=False))

    @Slot()
    def _reset_sampling(self) -> None:
        self._reset(replace(self.choices, sampling=None, new_seed=True))

    @Slot()
    def _reset_reply(self) -> None:
        usual = ReplyChoices()
        fields = ("max_new_tokens", "thinking", "think_budget")
        self._reset(replace(self.choices, **{name: getattr(usual, name) for name in fields}))

    def _reset(self, choices: ReplyChoices) -> None:
        self.choices = choices
        self._show()
        self.changed.emit(choices)
