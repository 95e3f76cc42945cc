"""The window: puts the parts together and connects them. What each part does is in its own file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QCheckBox, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.actions import ShortcutSheet, make_actions
from app.chat.answer_now import AnswerNowButton
from app.chat.composer import Composer
from app.chat.controller import ChatController
from app.chat.legend import Legend
from app.chat.page import transcript_page, writing_area
from app.chat.sampling_panel import SamplingPanel
from app.chat.transcript_model import TranscriptModel
from app.chat.transcript_view import TranscriptView
from app.chat.welcome import Welcome
from app.docks import Docks
from app.help.hints import first_hints
from app.history.attach_desk import AttachmentDesk
from app.history.attachment_bar import AttachmentBar
from app.history.chats import Chats
from app.history.desk import HistoryDesk
from app.history.opening import open_store
from app.history.system_dialog import SystemDialog
from app.icons import ink_icons
from app.inspector.panel import InspectorPanel
from app.language import tr
from app.library.model_bar import ModelBar
from app.library.towers import Towers
from app.memory import Memory
from app.message_bar import MessageBar
from app.opening import open_files
from app.reading.pictures import show_picture
from app.reading.view import ReadingView
from app.residency.desk import MemoryDesk
from app.rooms import Rooms
from app.runs.desk import RunDesk
from app.settings import RecentModel, ReplyChoices, SettingsFile
from app.standing import Standing
from app.status import StatusLine
from app.style import Stylist
from app.theme import Theme, ThemeMode
from app.widgets import add_bar, first_control
from app.worker import EngineHandle
from engine import Failed, Finished, GenerateOptions, Record

if TYPE_CHECKING:
    from engine import ModelInfo

CLOSE_PATIENCE_MS = 5000


class MainWindow(QMainWindow):
    """Chat in the middle, the model above, numbers below, inspector and settings beside."""

    closing = Signal()
    """It takes no more orders; what runs is being stopped, which may take seconds."""
    closed = Signal()

    def __init__(
        self,
        engine: EngineHandle,
        file: SettingsFile,
        stylist: Stylist,
        demo: Callable[[], Path],
        history: Path | None = None,
    ) -> None:
        """`history`: folder of the conversations; they are kept beside the settings if none is given."""
        super().__init__()
        self.setWindowTitle("Draftscope")  # not translated: the program's name
        self.setAcceptDrops(True)
        self.setMinimumSize(QSize(720, 480))
        self.engine = engine
        self._stylist = stylist
        self._demo = demo
        self._closing = False
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._finish_closing)
        self.memory = Memory(self, file)
        self._data = history or file.path.parent
        store, self._history_problem = open_store(self._data)
        self.chats = Chats(store, self)
        self.controller = ChatController(engine, self._reply_options, self.chats, self)
        self._make_parts()
        self.desk = HistoryDesk(self, self.controller, self.view, self.composer, self.message_bar, stylist.theme)
        self.actions_by_name = make_actions(self, self._slots())
        self._arrange()
        self.standing = Standing(self, demo)
        self._connect()
        self._restore()
        self._on_theme(stylist.theme)
        self.standing.refresh()

    def _make_parts(self) -> None:
        theme = self._stylist.theme
        self.model_bar = ModelBar()
        self.message_bar = MessageBar(theme)
        self.transcript = TranscriptModel(self)
        self.view = TranscriptView(self.transcript, theme)
        self.reading = ReadingView(self.transcript, theme)
        self.reading.picture_wanted.connect(lambda picture: show_picture(picture, self))
        self.legend = Legend(theme)
        self.refused = QCheckBox(tr("Show refused drafts"))
        self.refused.setToolTip(tr("Show, struck through, what the drafter proposed and the model refused (Ctrl+H)"))
        self.welcome = Welcome()
        cards = AttachmentBar(theme)
        self.composer = Composer(cards)
        self.files = AttachmentDesk(self, cards, self.composer, self.controller, self.message_bar)
        self.panel = SamplingPanel(self.memory.settings.reply, self.memory.settings.presets)
        self.inspector = InspectorPanel(theme)
        self.runs = RunDesk(self.engine, self.view, self.inspector, self._data / "runs", theme)
        self.towers = Towers(self.controller, self.memory, self)
        self.weights = MemoryDesk(self.engine, self.memory, theme, self)
        self.status = StatusLine()
        self.rooms = Rooms(self, self.memory, self._stylist, self._demo, self._data)

    def _slots(self) -> dict[str, Callable[[], object]]:
        return {
            "open_folder": self.model_bar.choose_folder,
            "open_file": self.model_bar.choose_file,
            "open_demo": self.open_demo,
            "add_sidecar": self.model_bar.choose_sidecar,
            "quit": self.close,
            "new_chat": self.new_chat,
            "regenerate": self.controller.regenerate,
            "stop": self.stop,
            "show_chats": lambda: self.docks.toggle("show_chats"),
            **self.desk.slots(),
            "write": lambda: self.composer.edit.setFocus(Qt.FocusReason.ShortcutFocusReason),
            "reading_view": self.switch_view,
            "attach": self.files.choose,
            "system_prompt": lambda: SystemDialog(self.chats, self).open(),
            "show_refused": self.refused.toggle,
            "show_inspector": lambda: self.docks.toggle("show_inspector"),
            "show_memory": lambda: self.docks.toggle("show_memory"),
            "show_settings": lambda: self.docks.toggle("show_settings"),
            "show_runs": lambda: self.docks.toggle("show_runs"),
            "fold_thinking": self.view.toggle_thinking,
            **self.runs.slots(),
            "next_pane": self.focus_next_pane,
            "theme_system": lambda: self.set_theme_mode("system"),
            "theme_light": lambda: self.set_theme_mode("light"),
            "theme_dark": lambda: self.set_theme_mode("dark"),
            "switch_theme": lambda: self.set_theme_mode("light" if self._stylist.theme.dark else "dark"),
            "shortcuts": lambda: ShortcutSheet(self).show(),
            **self.rooms.slots(),
        }

    def _arrange(self) -> None:
        shown = ("new_chat", "regenerate", "show_inspector", "show_memory", "show_settings")
        self.model_bar.add_actions([self.actions_by_name[name] for name in shown])
        add_bar(self, self.model_bar, tr("Model"), "topBar")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.welcome)
        self.pages.addWidget(transcript_page(self.view, self.legend, self.refused))
        self.pages.addWidget(self.reading)
        self._writing = writing_area(self.composer)
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part, stretch in ((self.message_bar, 0), (self.runs.wrap(self.pages), 1), (self._writing, 0)):
            column.addWidget(part, stretch)
        self.setCentralWidget(middle)
        panels = {
            "show_inspector": (tr("Inspector"), tr("inspector"), self.inspector),
            "show_memory": (tr("Memory"), tr("memory"), self.weights.panel),
            "show_runs": (tr("Runs"), tr("runs"), self.runs.panel),
            "show_settings": (tr("Settings"), tr("settings"), self.panel),
        }
        chats = tr("Conversations"), tr("conversations"), self.desk.sidebar
        self.docks = Docks(self, panels, {"show_chats": chats})
        self.docks.follow(self.actions_by_name)
        self.desk.follow(self.actions_by_name)
        self.desk.sidebar.new_wanted.connect(self.new_chat)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status, 1)

    def _connect(self) -> None:
        chat = self.controller
        chat.looks_elsewhere = lambda: self.panel.choices.looks_elsewhere
        self.memory.problem.connect(self.message_bar.add_error)
        chat.reply_began.connect(self._keep_unsent)  # a message that waited has been sent
        chat.records.connect(self._on_records)
        self.runs.follow(chat)
        self.runs.said.connect(self.message_bar.show_message)
        self.runs.page_changed.connect(self._on_page)
        chat.plots_due.connect(self.inspector.refresh_soon)
        self.weights.follow(chat)
        self.weights.problem.connect(self.message_bar.show_message)
        self.weights.load_requested.connect(self.load)
        chat.reply_ended.connect(self._on_reply_ended)
        chat.shown.connect(self._on_shown)
        chat.load_progressed.connect(self.model_bar.show_progress)
        chat.loaded.connect(self._on_loaded)
        chat.load_failed.connect(self.message_bar.show_message)
        self.model_bar.load_requested.connect(self.load)
        self.model_bar.demo_requested.connect(self.open_demo)
        self.model_bar.tower_unwanted.connect(self.towers.leave_out)
        self.model_bar.cancel_requested.connect(self.stop)
        self.welcome.suggested.connect(lambda _prompt: self.composer.edit.setFocus())  # before the button goes
        self.welcome.suggested.connect(self.send)
        self.welcome.demo_requested.connect(self.open_demo)
        self.welcome.open_requested.connect(self.model_bar.choose_folder)
        self.welcome.again_requested.connect(self._open_last)
        self.composer.submitted.connect(self.files.send)
        self.composer.stop_requested.connect(self.stop)
        self.composer.take_back_requested.connect(chat.take_back)
        self.composer.text_changed.connect(self._keep_unsent)
        for view in (self.view, self.reading):
            AnswerNowButton(view, chat)
        self.panel.changed.connect(self._on_choices)
        self.panel.presets.saved.connect(lambda presets: self.memory.change(presets=presets))
        self.model_bar.first = [self.actions_by_name[name] for name in ("library", "download")]
        self.rooms.open_requested.connect(self.load)
        self.rooms.shelf.told.connect(self.message_bar.show_message)
        self.rooms.theme_wanted.connect(self.set_theme_mode)
        self.rooms.attend(self.engine, self.actions_by_name, self.desk)
        self.rooms.hints = first_hints(self.model_bar.button, self.composer, self.pages, self.inspector)
        self.refused.toggled.connect(self._on_refused)
        self._stylist.changed.connect(self._on_theme)
        self.engine.closed.connect(self._finish_closing)

    def _restore(self) -> None:
        settings = self.memory.settings
        self.resize(1280, 800)
        self.memory.restore_window()
        self.refused.setChecked(settings.show_refused)
        self._on_refused(settings.show_refused)
        self.chats.start()
        if self._history_problem:
            self.message_bar.show_message(self._history_problem)
        self.model_bar.show_recent(settings.recent)
        self.composer.edit.setFocus()

    # What a person can ask for

    @Slot(object, object)
    def load(self, path: Path, sidecar: Path | None = None, mmproj: Path | None = None) -> None:
        """Open a checkpoint; the present one stays until the new one is ready."""
        self.message_bar.dismiss()
        self.controller.load(path, sidecar, mmproj)

    @Slot()
    def open_demo(self) -> None:
        self.load(self._demo())

    @Slot()
    def _open_last(self) -> None:
        last = self.memory.settings.recent[0]
        self.load(Path(last.path), Path(last.sidecar) if last.sidecar else None)

    @Slot(str)
    def send(self, text: str) -> None:
        """Say something to the model, or give it back to the composer with the reason why that cannot be done now."""
        self.files.send(text)

    @Slot()
    def new_chat(self) -> None:
        self.message_bar.dismiss()
        self.controller.new_chat()
        self.composer.edit.setFocus()

    @Slot()
    def stop(self) -> None:
        """Stop what runs; if nothing does, put away the token's card, or else the message."""
        if self.controller.replying or self.controller.loading:
            self.controller.stop()
        elif self.runs.stop():
            pass
        elif self.composer.editing:
            self.composer.end_edit()
        elif not self.view.card.isHidden():
            self.view.unpin()
        else:
            self.message_bar.dismiss()

    @Slot()
    def switch_view(self) -> None:
        """Go from the tokens to the rendered text, or back."""
        self.memory.change(reading_view=not self.memory.settings.reading_view)
        self.standing.refresh()

    @Slot()
    def focus_next_pane(self) -> None:
        """Go round the parts of the window."""
        parts = [self.model_bar.button, self.view, self.reading, self.composer.edit, *self.docks.in_sight()]
        panes = [part for part in parts if part.isVisible()]
        focus = self.focusWidget()
        here = next((i for i, p in enumerate(panes) if p is focus or (focus is not None and p.isAncestorOf(focus))), -1)
        first_control(panes[(here + 1) % len(panes)]).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_theme_mode(self, mode: ThemeMode) -> None:
        """Choose light, dark or what the system wants."""
        self.memory.change(theme=mode)
        self._stylist.set_mode(mode)

    # What the engine tells

    @Slot(object)
    def _on_records(self, records: tuple[Record, ...]) -> None:
        self.transcript.add_records(records)
        self.runs.add_records(records)

    @Slot(object)
    def _on_reply_ended(self, last: Finished | Failed) -> None:
        self.transcript.end_reply()
        if isinstance(last, Failed):
            self.message_bar.show_message(last.message)

    @Slot()
    def _on_shown(self) -> None:
        """Another path or another conversation is open."""
        self.weights.panel.clear()
        self.runs.clear()

    @Slot(object)
    def _on_loaded(self, info: ModelInfo) -> None:
        self.model_bar.show_model(info)
        self.panel.show_model(info)
        if Path(info.path) != self._demo():
            self.memory.keep(self.memory.settings.with_recent(RecentModel(info.path, info.sidecar or "")))
            self.model_bar.show_recent(self.memory.settings.recent)

    # What is shown

    @Slot(object)
    def _on_theme(self, theme: Theme) -> None:
        ink_icons(self, theme)
        parts = (self.view, self.legend, self.inspector, self.message_bar, self.runs, self.weights, self.desk)
        for part in (*parts, self.reading, self.files):
            part.apply_theme(theme)
        for mode in ("system", "light", "dark"):
            self.actions_by_name[f"theme_{mode}"].setChecked(self._stylist.mode == mode)

    @Slot()
    def _on_page(self) -> None:
        """The chat, or a run in front of it."""
        chat = self.runs.stack.currentIndex() == 0
        self._writing.setVisible(chat)
        self.desk.stand_behind(not chat)

    @Slot(bool)
    def _on_refused(self, show: bool) -> None:
        self.view.show_refused = show
        self.actions_by_name["show_refused"].setChecked(show)
        self.memory.change(show_refused=show)

    # What is remembered

    def _reply_options(self) -> GenerateOptions:
        model = self.controller.model
        return self.panel.choices.options(model.recommended if model else None)

    @Slot(object)
    def _on_choices(self, choices: ReplyChoices) -> None:
        self.memory.change(reply=choices)
        self.standing.show_tally()

    @Slot()
    def _keep_unsent(self) -> None:
        if self.composer.editing:
            return
        self.chats.keep_unsent("\n".join(filter(None, (self.controller.queued, self.composer.text))))

    # Files dropped on the window

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.open_dropped([Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()])

    def open_dropped(self, paths: list[Path]) -> None:
        """Open what was dropped on the window, or given to the program."""
        open_files(self, paths)

    # The end

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop the engine first; if it has not ended after five seconds the window closes all the same."""
        event.ignore()
        if not self._closing:
            self._closing = True
            self.closing.emit()
            try:
                self._keep_unsent()
                self.memory.save()
                self.status.activity.setText(tr("Stopping…"))
                self.setEnabled(False)
                self.rooms.close()
            finally:  # whatever cannot be kept: a window that does not close would be worse
                self._patience.start(CLOSE_PATIENCE_MS)
                self.engine.close()

    @Slot()
    def _finish_closing(self) -> None:
        self._patience.stop()
        self.weights.close()
        self.runs.recorder.wait()
        self.controller.leave()
        self.hide()
        self.closed.emit()
