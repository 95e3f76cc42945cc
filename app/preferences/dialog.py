"""The program's own settings: how it looks, and how the next model is opened. Each with a line that explains it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFrame,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.chat.sampling_panel import Group
from app.settings import LARGEST_FONT, SMALLEST_FONT, LoadChoices
from app.theme import GRID, ThemeMode
from app.widgets import label, named

THEMES: tuple[tuple[ThemeMode, str], ...] = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))
LEAST_CONTEXT = 16


class PreferencesDialog(QDialog):
    """Edits at once: there is nothing to confirm. `load_changed` concerns the next model that is opened."""

    theme_changed = Signal(str)
    font_changed = Signal(float)
    load_changed = Signal(object)  # LoadChoices

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preferencesDialog")
        self.setWindowTitle("Preferences")
        self.resize(72 * GRID, 76 * GRID)
        self.load = LoadChoices()
        page = named(QWidget(), "settingsPanel")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, GRID, 0)
        column.setSpacing(2 * GRID)
        column.addWidget(self._look())
        column.addWidget(self._opening())
        column.addWidget(label("How replies are drafted and sampled is set in the Settings panel (Ctrl+,).", "caption"))
        column.addStretch(1)
        area = named(QScrollArea(), "settingsScroll")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        outer.addWidget(area, 1)
        outer.addWidget(buttons)

    def _look(self) -> Group:
        group = Group("Appearance")
        self.theme = QComboBox()
        for mode, text in THEMES:
            self.theme.addItem(text, mode)
        self.font_size = QSpinBox(minimum=SMALLEST_FONT - 1, maximum=LARGEST_FONT, suffix=" pt")
        self.font_size.setSpecialValueText("As the system")
        self.font_size.lineEdit().setTextMargins(GRID, 0, 0, 0)
        group.add("Colours", self.theme, "Light, dark, or whatever the system shows.")
        group.add("Text size", self.font_size, "Of everything in the window; headings keep their proportion.")
        self.theme.currentIndexChanged.connect(lambda: self.theme_changed.emit(self.theme.currentData()))
        self.font_size.valueChanged.connect(self._on_font)
        group.reset_requested.connect(self._reset_look)
        return group

    def _opening(self) -> Group:
        group = Group("From the next model that is opened")
        self.threads = QSpinBox(minimum=0, maximum=256)
        self.threads.setSpecialValueText("All cores")
        self.context = QSpinBox(minimum=LEAST_CONTEXT - 1, maximum=1 << 20, singleStep=1024)
        self.context.setGroupSeparatorShown(True)
        for box in (self.threads, self.context):
            box.lineEdit().setTextMargins(GRID, 0, 0, 0)
        self.context.setSpecialValueText("The model's limit")
        group.add("Threads", self.threads, "Compute threads. One for each physical core is usually fastest.")
        group.add("Context", self.context, "Most tokens of a conversation; caches grow with what is used of it.")
        for box in (self.threads, self.context):
            box.valueChanged.connect(self._on_load)
        group.reset_requested.connect(self._reset_load)
        return group

    def show_values(self, theme: ThemeMode, font_size: float, load: LoadChoices) -> None:
        """Show what is set now, without telling anyone."""
        self.load = load
        boxes = (self.theme, self.font_size, self.threads, self.context)
        blockers = [QSignalBlocker(box) for box in boxes]
        self.theme.setCurrentIndex(self.theme.findData(theme))
        self.font_size.setValue(round(font_size) if font_size else self.font_size.minimum())
        self.threads.setValue(load.threads or 0)
        self.context.setValue(load.context or self.context.minimum())
        del blockers

    @Slot()
    def _on_font(self) -> None:
        value = self.font_size.value()
        self.font_changed.emit(0.0 if value < SMALLEST_FONT else float(value))

    @Slot()
    def _on_load(self) -> None:
        choices = replace(
            self.load,
            threads=self.threads.value() or None,
            context=self.context.value() if self.context.value() >= LEAST_CONTEXT else None,
        )
        self._keep(choices)

    def _keep(self, choices: LoadChoices) -> None:
        self.load = choices
        self.load_changed.emit(choices)

    @Slot()
    def _reset_look(self) -> None:
        self.theme.setCurrentIndex(self.theme.findData("system"))
        self.font_size.setValue(self.font_size.minimum())

    @Slot()
    def _reset_load(self) -> None:
        self.show_values(self.theme.currentData(), float(self._font()), LoadChoices())
        self._keep(LoadChoices())

    def _font(self) -> int:
        value = self.font_size.value()
        return 0 if value < SMALLEST_FONT else value
