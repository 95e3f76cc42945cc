"""The program's own settings: how it looks, how models are opened, where things lie. Each with an explanation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.chat.sampling_panel import Group
from app.language import ENGLISH, SYSTEM, Languages, mark, tr
from app.preferences.places import Places, breakable
from app.settings import LARGEST_FONT, SMALLEST_FONT, LoadChoices
from app.theme import GRID, ThemeMode
from app.widgets import ScrollingPage, label, named, open_at, push

THEMES: tuple[tuple[ThemeMode, str], ...] = (
    ("system", mark("As the system")),
    ("light", mark("Light")),
    ("dark", mark("Dark")),
)
PRECISIONS = ((None, mark("As it is stored")), ("q8", mark("8 bits (Q8_0)")), ("q4", mark("4 bits (Q4_0)")))
CACHES = (("f32", mark("Exact (F32)")), ("bf16", mark("Half (BF16)")), ("q8", mark("8 bits (Q8_0)")))
LEAST_CONTEXT = 16


class PreferencesDialog(QDialog):
    """Edits at once: there is nothing to confirm. `load_changed` concerns the next model that is opened."""

    theme_changed = Signal(str)
    font_changed = Signal(float)
    language_changed = Signal(str)
    load_changed = Signal(object)  # LoadChoices
    reload_requested = Signal()
    downloads_changed = Signal(object)  # Path, or None for the usual folder

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preferencesDialog")
        self.setWindowTitle(tr("Preferences"))
        open_at(self, 76 * GRID, 88 * GRID)
        self.load = LoadChoices()
        self.places = Places()
        self.places.change_requested.connect(self._choose_downloads)
        page = named(QWidget(), "settingsPanel")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, GRID, 0)
        column.setSpacing(2 * GRID)
        column.addWidget(self._look())
        column.addWidget(self._opening())
        column.addWidget(self.places)
        elsewhere = tr("How replies are drafted and sampled is set in the Settings panel (Ctrl+,).")
        column.addWidget(label(elsewhere, "caption", wrap=True))
        column.addStretch(1)
        area = named(ScrollingPage(), "settingsScroll")
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.defaults = buttons.addButton(tr("Restore defaults"), QDialogButtonBox.ButtonRole.ResetRole)
        self.defaults.setToolTip(tr("Everything in this window; conversations, models and presets stay"))
        self.defaults.clicked.connect(self.restore_defaults)
        buttons.rejected.connect(self.close)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        outer.addWidget(area, 1)
        outer.addWidget(buttons)
        self.theme.setFocus()  # else the ring would be on the first button, which takes everything back

    def _look(self) -> Group:
        group = Group(tr("Appearance"))
        self.theme = QComboBox()
        for mode, text in THEMES:
            self.theme.addItem(tr(text), mode)
        self.font_size = QSpinBox(minimum=SMALLEST_FONT - 1, maximum=LARGEST_FONT, suffix=" pt")
        self.font_size.setSpecialValueText(tr("As the system"))
        self.font_size.lineEdit().setTextMargins(GRID, 0, 0, 0)
        group.add(tr("Colours"), self.theme, tr("Light, dark, or whatever the system shows."))
        group.add(tr("Text size"), self.font_size, tr("Of everything in the window; headings keep their proportion."))
        self.language = QComboBox()
        self._about_languages = group.add(tr("Language"), self.language, "")
        self.theme.currentIndexChanged.connect(lambda: self.theme_changed.emit(self.theme.currentData()))
        self.font_size.valueChanged.connect(self._on_font)
        self.language.currentIndexChanged.connect(self._on_language)
        group.reset_requested.connect(self._reset_look)
        return group

    def _opening(self) -> Group:
        group = Group(tr("From the next model that is opened"))
        self.precision, self.kv_cache = QComboBox(), QComboBox()
        for precision, text in PRECISIONS:
            self.precision.addItem(tr(text), precision)
        for kind, text in CACHES:
            self.kv_cache.addItem(tr(text), kind)
        group.add(
            tr("Precision"),
            self.precision,
            tr(
                "Rounds the weights of a float checkpoint while it is opened, and keeps "
                "all of them in memory; a checkpoint that is quantised already stays as it is."
            ),
        )
        group.add(
            tr("KV cache"),
            self.kv_cache,
            tr(
                "What is kept of each token of the context; smaller types let a long "
                "context fit, and change replies slightly."
            ),
        )
        self.threads = QSpinBox(minimum=0, maximum=256)
        self.threads.setSpecialValueText(tr("All cores"))
        self.context = QSpinBox(minimum=LEAST_CONTEXT - 1, maximum=1 << 20, singleStep=1024)
        self.context.setGroupSeparatorShown(True)
        for box in (self.threads, self.context):
            box.lineEdit().setTextMargins(GRID, 0, 0, 0)
        self.context.setSpecialValueText(tr("The model's limit"))
        group.add(tr("Threads"), self.threads, tr("Compute threads. One for each physical core is usually fastest."))
        group.add(
            tr("Context"), self.context, tr("Most tokens of a conversation; caches grow with what is used of it.")
        )
        for box in (self.threads, self.context):
            box.valueChanged.connect(self._on_load)
        for choice in (self.precision, self.kv_cache):
            choice.currentIndexChanged.connect(self._on_load)
        self.reload = push(tr("Open the model again now"), self.reload_requested.emit)
        self.reload.setToolTip(tr("The model in use was opened with other settings than these"))
        column = group.layout()
        assert column is not None
        column.addWidget(self.reload)
        group.reset_requested.connect(self._reset_load)
        return group

    def show_values(self, theme: ThemeMode, font_size: float, load: LoadChoices) -> None:
        """Show what is set now, without telling anyone."""
        self.load = load
        self.show_theme(theme)
        boxes = (self.font_size, self.threads, self.context, self.precision, self.kv_cache)
        blockers = [QSignalBlocker(box) for box in boxes]
        self.font_size.setValue(round(font_size) if font_size else self.font_size.minimum())
        self.threads.setValue(load.threads or 0)
        self.context.setValue(load.context or self.context.minimum())
        self.precision.setCurrentIndex(self.precision.findData(load.precision))
        self.kv_cache.setCurrentIndex(self.kv_cache.findData(load.kv_cache))
        del blockers

    def show_theme(self, theme: ThemeMode) -> None:
        """Show which colours are chosen now, without telling anyone."""
        blocker = QSignalBlocker(self.theme)
        self.theme.setCurrentIndex(self.theme.findData(theme))
        del blocker

    def show_languages(self, languages: Languages, chosen: str) -> None:
        """Offer the languages that there are now, without telling anyone; one that is gone has become English."""
        blocker = QSignalBlocker(self.language)
        self.language.clear()
        self.language.addItem(tr("As the system"), SYSTEM)
        for language in languages.available():
            self.language.addItem(language.name, language.code)
        at = self.language.findData(chosen)
        self.language.setCurrentIndex(at if at >= 0 else self.language.findData(ENGLISH))
        del blocker
        why = mark(
            "Takes effect at the next start. Further languages: put a gettext catalogue (such as de.mo) into {folder}."
        )
        self._about_languages.setText(tr(why, folder=breakable(languages.own)))
        self.language.setAccessibleDescription(tr(why, folder=languages.own))

    def show_reload(self, wanted: bool) -> None:
        """Whether the model in use was opened with other settings."""
        self.reload.setVisible(wanted)

    @Slot()
    def restore_defaults(self) -> None:
        """Take back everything that is set in this window."""
        self._reset_look()
        self._reset_load()
        self.downloads_changed.emit(None)

    @Slot()
    def _choose_downloads(self) -> None:
        if folder := QFileDialog.getExistingDirectory(self, tr("A folder for downloads"), str(Path.home())):
            self.downloads_changed.emit(Path(folder))

    @Slot()
    def _on_font(self) -> None:
        value = self.font_size.value()
        self.font_changed.emit(0.0 if value < SMALLEST_FONT else float(value))

    @Slot()
    def _on_language(self) -> None:
        self.language_changed.emit(self.language.currentData())

    @Slot()
    def _on_load(self) -> None:
        choices = replace(
            self.load,
            threads=self.threads.value() or None,
            context=self.context.value() if self.context.value() >= LEAST_CONTEXT else None,
            precision=self.precision.currentData(),
            kv_cache=self.kv_cache.currentData(),
        )
        self._keep(choices)

    def _keep(self, choices: LoadChoices) -> None:
        self.load = choices
        self.load_changed.emit(choices)

    @Slot()
    def _reset_look(self) -> None:
        self.theme.setCurrentIndex(self.theme.findData("system"))
        self.font_size.setValue(self.font_size.minimum())
        self.language.setCurrentIndex(self.language.findData(SYSTEM))

    @Slot()
    def _reset_load(self) -> None:
        self.show_values(self.theme.currentData(), float(self._font()), LoadChoices())
        self._keep(LoadChoices())

    def _font(self) -> int:
        value = self.font_size.value()
        return 0 if value < SMALLEST_FONT else value
