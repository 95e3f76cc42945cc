"""The page before the first message: what this is, a model to begin with, and three things to ask."""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import files
from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.chat.page import Column
from app.flow import FlowRow
from app.language import mark, tr
from app.theme import GRID
from app.widgets import ScrollingPage, label, named, push

HERO = mark("Watch a model guess ahead")
LEAD = mark(
    "A small drafter proposes the next few tokens, the model checks them all in one pass. "
    "Every token of a reply shows what became of it: accepted, corrected, or written by the model alone."
)


class Welcome(ScrollingPage):
    """Buttons to open a model while there is none; suggestions once there is. Scrolls where the window is low."""

    suggested = Signal(str)
    demo_requested = Signal()
    open_requested = Signal()
    again_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("welcome")
        hero, lead = label(tr(HERO), "hero", wrap=True), label(tr(LEAD), "lead", wrap=True)
        for text in (hero, lead):
            text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._starts = self._start_buttons()
        self._suggestions = QWidget()
        list_layout = QVBoxLayout(self._suggestions)
        list_layout.setContentsMargins(0, 0, 0, 0)
        list_layout.setSpacing(GRID)
        middle = QWidget()
        middle.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * GRID)
        column.addWidget(hero)
        column.addWidget(lead)
        column.addSpacing(GRID)
        column.addWidget(self._starts)
        column.addWidget(self._suggestions)
        inner = named(QWidget(), "page")
        page = QVBoxLayout(inner)
        page.setContentsMargins(0, 3 * GRID, 0, 3 * GRID)
        page.addStretch(2)
        page.addWidget(Column(middle, above=0, below=0))
        page.addStretch(3)
        self.setWidget(inner)

    def _start_buttons(self) -> QWidget:
        tip = tr("A tiny model that comes with the program")
        self._demo = push(tr("Open the demo"), self.demo_requested.emit, kind="primary", tip=tip)
        choose = push(tr("Open a checkpoint folder…"), self.open_requested.emit)
        self._again = push("", self.again_requested.emit)
        return FlowRow((self._again, self._demo, choose), "centre")

    def offer_start(self, last: str) -> None:
        """No model is there: offer the demo, a folder, and (if not empty) the model used last."""
        self._again.setText(tr("Open {last} again", last=last))
        self._again.setAccessibleName(self._again.text())
        self._again.setVisible(bool(last))
        self._starts.show()
        self._suggestions.hide()

    def offer_prompts(self, kind: Literal["demo", "general"]) -> None:
        """A model is there or on its way: offer things to ask it."""
        layout = self._suggestions.layout()
        assert layout is not None
        while (item := layout.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for entry in json.loads(files("resources").joinpath("prompts.json").read_text("utf-8"))[kind]:
            prompt = entry["prompt"] if kind == "demo" else tr(entry["prompt"])  # the demo knows English
            button = Suggestion(tr(entry["title"]), prompt)
            button.clicked.connect(partial(self.suggested.emit, prompt))
            layout.addWidget(button)
        self._starts.hide()
        self._suggestions.show()


class Suggestion(QPushButton):
    """A prompt to send by one click, with a line on why it is worth watching."""

    def __init__(self, title: str, prompt: str) -> None:
        super().__init__()
        self.setObjectName("suggestion")
        self.setAccessibleName(f"{title}: {prompt}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        caption, text = label(title, "caption"), label(prompt, wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID, 12, 2 * GRID, 12)
        column.setSpacing(GRID // 2)
        for line in (caption, text):
            line.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(line)
        self.setMinimumHeight(column.sizeHint().height())
