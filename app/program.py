"""The program around the window: one QApplication, one window, one engine thread, and an orderly end."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QLocale, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import APP_ID
from app.crash import CrashReporter
from app.drive import Drive, Errand
from app.file_events import FileOpenings
from app.help import log
from app.icons import ink_icons, program_icon
from app.instance import Listener, hand_over, socket_name
from app.jobs import LoadModel
from app.language import FOLDER, Languages
from app.main_window import MainWindow
from app.milestones import Milestones
from app.settings import SettingsFile
from app.signals import SignalWatch
from app.start import Start
from app.style import Stylist
from app.theme import ThemeMode
from app.worker import EngineHandle
from engine import __version__

SWITCH_S = 0.0005
"""Seconds for which the window may keep the interpreter's lock from the engine, which needs it between two kernels."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    settings_dir: Path
    model: Path | None = None
    sidecar: Path | None = None
    mmproj: Path | None = None
    run: Path | None = None
    """A saved run to show; then no model is opened."""
    dropped: tuple[Path, ...] = ()
    """Files to open as if they were dropped on the window."""
    theme: ThemeMode | None = None
    size: tuple[int, int] | None = None
    errand: Errand | None = None
    history_dir: Path | None = None
    """Folder of the conversations; None: beside the settings."""
    single: bool = False
    """Hand the files to a window that is open with the same settings, if there is one, instead of opening another."""
    log_dir: Path | None = None
    """Folder of the log; None: it is kept in memory only."""
    farewell: Callable[[], object] = lambda: None
    """Done last where the process has to be ended as it is."""
    timing: bool = False
    """Tell on stderr how long the start took."""
    milestones: Milestones = field(default_factory=Milestones)

    @property
    def files(self) -> list[Path]:
        """Everything that is to be opened."""
        return [path for path in (self.model, self.sidecar, self.mmproj, self.run, *self.dropped) if path is not None]


def run(
    request: Request, load_model: LoadModel, demo: Callable[[], Path], prepare: Callable[[], object] | None = None
) -> int:
    """Open the window and stay until it is closed; returns the exit code.

    `prepare` is called once the window is painted, before the engine is used.
    """
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("draftscope")
    app.setApplicationDisplayName("Draftscope")  # not translated: a name
    QGuiApplication.setDesktopFileName(APP_ID)
    app.setWindowIcon(program_icon())
    name = socket_name(request.settings_dir) if request.single else ""
    if name and hand_over(name, request.files):
        return 0
    sys.setswitchinterval(SWITCH_S)
    app.setQuitOnLastWindowClosed(False)  # the window says when its engine has ended
    log.start(request.log_dir)
    logging.getLogger("draftscope").info("Draftscope %s starts on %s", __version__, platform.platform())
    file = SettingsFile(request.settings_dir)
    settings = file.load()
    speak(app, request.settings_dir, settings.language)
    stylist = Stylist(app, request.theme or settings.theme)
    window = MainWindow(EngineHandle(load_model), file, stylist, demo, request.history_dir)
    if name:
        listen(name, window)
    openings = FileOpenings(app, window)
    openings.opened.connect(lambda paths: come_forward(window, paths))
    crash = CrashReporter(window)
    window.engine.fault.connect(crash.report)
    crash.said.connect(window.message_bar.show_message)
    signals = SignalWatch(window.close, window)
    drive = Drive(window, request.errand or Errand())
    window.closed.connect(app.quit)
    app.screenAdded.connect(lambda: ink_icons(window, stylist.theme))  # icons are drawn for the screens that are there
    if request.size:
        window.resize(QSize(*request.size))
        if not window.memory.settings.layout:
            window.docks.fit()
    request.milestones.reach("window made")  # not translated: for measurements
    steps = [*([prepare] if prepare else []), *first_steps(request, window, drive, demo)]
    start = Start(window, steps, request.milestones)
    if request.timing:
        start.ready.connect(lambda: sys.stderr and sys.stderr.write(request.milestones.report()))
    window.show()
    app.exec()
    openings.release()
    crash.release()
    log.stop()
    signals.release()
    stylist.release()
    if window.engine.running:
        # A read that hangs in the system cannot be called off, and Qt must not tear down a running thread.
        sys.stdout.flush()
        request.farewell()
        os._exit(drive.code)
    return drive.code


def listen(name: str, window: MainWindow) -> None:
    """Take files of later starts, until the window closes: who starts the program while it does wants another one."""
    listener = Listener(name, window)
    listener.called.connect(lambda paths: come_forward(window, paths))
    window.closing.connect(listener.close)


def speak(app: QApplication, settings_dir: Path, wanted: str) -> None:
    """Have the application speak the language `wanted`, and lay its windows out as that is written."""
    language = Languages(settings_dir / FOLDER).install(app, wanted)
    app.setLayoutDirection(QLocale(language.code).textDirection())


def first_steps(
    request: Request, window: MainWindow, drive: Drive, demo: Callable[[], Path]
) -> list[Callable[[], object]]:
    """What the window does once it is on the screen."""
    steps: list[Callable[[], object]] = []
    if request.errand is None:
        steps.append(window.rooms.show_first_tour)
    if request.run is not None:
        run = request.run
        steps.append(lambda: drive.show_run(run))
    if request.dropped:
        steps.append(lambda: window.open_dropped(list(request.dropped)))
    first = request.model or (demo() if not window.memory.settings.recent else None)
    if first is not None and request.run is None and not request.dropped:
        # Not by `window.load`, which puts a message away: what is wrong with the history has just been said.
        steps.append(lambda: window.controller.load(first, request.sidecar, request.mmproj))
    return steps


def come_forward(window: MainWindow, paths: list[Path]) -> None:
    """The program was started again: bring the window to the front, with the files that were given."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.raise_()
    window.activateWindow()
    if paths:
        window.open_dropped(paths)
