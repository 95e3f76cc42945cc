"""The bar at the top: which checkpoint, with which sidecar, and how far a load has come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QFontMetrics
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QMenu,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.icons import SIZE, put_icon
from app.language import mark, tr
from app.library.choice import facts, is_there, recent_label, size_text
from app.settings import RecentModel
from app.theme import GRID
from app.widgets import ElidedLabel, push, small_font
from engine import LoadProgress

if TYPE_CHECKING:
    from engine import ModelInfo

FILTER = mark("Models (*.safetensors *.gguf);;All files (*)")
SIDECAR_FILTER = mark("Sidecars (*.safetensors *.gguf);;All files (*)")


TIP = mark("Choose a model (Ctrl+L opens the library), or drop one on the window")


class ModelButton(QToolButton):
    """Name and facts of the model on a button that opens the menu of models."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelButton")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._fit()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaximumWidth(80 * GRID)
        self._name, self._facts = ElidedLabel(), ElidedLabel()
        self._name.setProperty("type", "name")
        self._facts.setProperty("type", "caption")
        text = QVBoxLayout()
        text.setSpacing(0)
        text.addStretch(1)
        text.addWidget(self._name)
        text.addWidget(self._facts)
        text.addStretch(1)
        self._arrow = QToolButton()
        self._arrow.setIconSize(QSize(16, 16))
        put_icon(self._arrow, "chevron", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, GRID, 0)
        row.addLayout(text, 1)
        row.addWidget(self._arrow)
        for child in (self._name, self._facts, self._arrow):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._arrow.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._arrow.setAccessibleName(tr("Opens the menu of models"))

    def say(self, name: str, facts_line: str) -> None:
        self._name.show_text(name)
        self._facts.show_text(facts_line)
        self.setAccessibleName(tr("Model: {name}", name=name))
        self.setAccessibleDescription(facts_line)
        self.setToolTip(f"{facts_line}\n{tr(TIP)}")

    def sizeHint(self) -> QSize:
        return QSize(52 * GRID, self.minimumHeight())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        """As high as its two lines want."""
        lines = self.fontMetrics().height() + QFontMetrics(small_font(self.font())).height()
        self.setFixedHeight(max(6 * GRID, lines + 12))


class ModelBar(QFrame):
    """Chooses; loading itself is asked for by signal."""

    load_requested = Signal(object, object)  # Path, Path | None
    tower_unwanted = Signal()
    demo_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelBar")
        self._info: ModelInfo | None = None
        self._recent: tuple[RecentModel, ...] = ()
        self.first: Sequence[QAction] = ()
        """What the menu of models begins with."""
        self.button = ModelButton()
        self.menu = QMenu(self.button)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self._fill_menu)
        self.button.setMenu(self.menu)
        self._progress = self._progress_area()
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        row.setSpacing(GRID // 2)
        row.addWidget(self.button, 3)
        row.addSpacing(GRID)
        row.addWidget(self._progress, 2)
        row.addStretch(1)
        self._row = row
        self.show_model(None)

    def add_actions(self, actions: Sequence[QAction]) -> None:
        """Put buttons for these at the end of the bar."""
        for action in actions:
            tool = QToolButton()
            tool.setDefaultAction(action)
            tool.setIconSize(QSize(SIZE, SIZE))
            tool.setAccessibleName(action.text().replace("&", ""))
            self._row.addWidget(tool)

    def _progress_area(self) -> QWidget:
        area = QWidget()
        self._stage = ElidedLabel()
        self._stage.setProperty("type", "caption")
        self._meter = QProgressBar(textVisible=False)
        self._meter.setAccessibleName(tr("Progress of loading"))
        tip = tr("Stop loading (Esc); the model in use stays")
        self._cancel = push(tr("Cancel"), self.cancel_requested.emit, name=tr("Cancel loading"), tip=tip)
        column = QVBoxLayout()
        column.setSpacing(GRID // 2)
        column.addStretch(1)
        column.addWidget(self._stage)
        column.addWidget(self._meter)
        column.addStretch(1)
        row = QHBoxLayout(area)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2 * GRID)
        row.addLayout(column, 1)
        row.addWidget(self._cancel)
        area.setMinimumWidth(40 * GRID)
        area.hide()
        return area

    @property
    def stage(self) -> str:
        """What the load is doing, in words; empty when none runs."""
        return self._stage.whole if not self._progress.isHidden() else ""

    def show_model(self, info: ModelInfo | None) -> None:
        """Name the model in use."""
        self._info = info
        if info is None:
            self.button.say(tr("Choose a model"), tr("A folder, a .safetensors or .gguf file, or the demo"))
        else:
            self.button.say(info.name, facts(info))

    def show_recent(self, recent: tuple[RecentModel, ...]) -> None:
        self._recent = recent

    def show_loading(self, path: Path | None, *, stopping: bool = False) -> None:
        """Show that this path is being loaded, or (None) that nothing is."""
        started = path is not None and self._progress.isHidden()
        self._progress.setVisible(path is not None)
        self._cancel.setEnabled(not stopping)
        if path is not None and started:
            self._stage.show_text(tr("Opening {name}…", name=path.name))
            self._meter.setRange(0, 0)
        if stopping:
            self._stage.show_text(tr("Stopping…"))

    @Slot(object)
    def show_progress(self, progress: LoadProgress) -> None:
        """Show how far the load has come."""
        if not self._cancel.isEnabled():
            return
        message = progress.message[:1].upper() + progress.message[1:]
        if progress.unit == "bytes" and progress.total:
            done, whole = size_text(progress.done), size_text(progress.total)
            message = tr("{stage}: {done} of {whole}", stage=message, done=done, whole=whole)
        self._stage.show_text(message)
        self._meter.setRange(0, 1000 if progress.total else 0)
        if progress.total:
            self._meter.setValue(round(1000 * min(1.0, progress.done / progress.total)))

    @Slot()
    def choose_folder(self) -> None:
        """Ask for a checkpoint folder."""
        if folder := QFileDialog.getExistingDirectory(self, tr("Open a checkpoint folder"), self._start_folder()):
            self.load_requested.emit(Path(folder), None)

    @Slot()
    def choose_file(self) -> None:
        """Ask for a checkpoint file."""
        path, _ = QFileDialog.getOpenFileName(self, tr("Open a model file"), self._start_folder(), tr(FILTER))
        if path:
            self.load_requested.emit(Path(path), None)

    @Slot()
    def choose_sidecar(self) -> None:
        """Ask for a sidecar for the model in use, and load the two together."""
        if self._info is None:
            return
        path, _ = QFileDialog.getOpenFileName(self, tr("Open a sidecar"), self._start_folder(), tr(SIDECAR_FILTER))
        if path:
            self.load_requested.emit(Path(self._info.path), Path(path))

    def _start_folder(self) -> str:
        known = self._info.path if self._info else (self._recent[0].path if self._recent else "")
        return str(Path(known).parent) if known else str(Path.home())

    @Slot()
    def _fill_menu(self) -> None:
        self.menu.clear()
        self.menu.addActions(self.first)
        self.menu.addAction(tr("Open a checkpoint folder…")).triggered.connect(self.choose_folder)
        self.menu.addAction(tr("Open a model file…")).triggered.connect(self.choose_file)
        self.menu.addAction(tr("Open the demo")).triggered.connect(self.demo_requested)
        self.menu.addSeparator()
        add = self.menu.addAction(tr("Add a sidecar…"))
        add.setEnabled(self._info is not None)
        add.triggered.connect(self.choose_sidecar)
        if self._info is not None and self._info.sidecar:
            drop = self.menu.addAction(tr("Go on without the sidecar"))
            drop.triggered.connect(self._drop_sidecar)
        if self._info is not None and self._info.mmproj:
            self.menu.addAction(tr("Go on without the vision tower")).triggered.connect(self.tower_unwanted)
        if self._recent:
            self.menu.addSeparator()
            self.menu.addAction(tr("Recent")).setEnabled(False)
        for recent in self._recent:
            action = self.menu.addAction(recent_label(recent))
            action.setToolTip(recent.path)
            action.setEnabled(is_there(recent))
            action.setData(recent)
            action.triggered.connect(self._open_recent)

    @Slot()
    def _drop_sidecar(self) -> None:
        if self._info is not None:
            self.load_requested.emit(Path(self._info.path), None)

    @Slot()
    def _open_recent(self) -> None:
        action = self.sender()
        recent = action.data() if isinstance(action, QAction) else None
        if isinstance(recent, RecentModel):
            self.load_requested.emit(Path(recent.path), Path(recent.sidecar) if recent.sidecar else None)
