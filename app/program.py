"""The program around the window: one QApplication, one window, one engine thread, and an orderly end."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.crash import CrashReporter
from app.drive import Drive, Errand
from app.help import log
from app.icons import program_icon
from app.main_window import MainWindow
from app.settings import SettingsFile
from app.signals import SignalWatch
from app.style import Stylist
from app.theme import ThemeMode
from app.worker import EngineHandle, LoadModel
from engine import __version__


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    settings_dir: Path
    model: Path | None = None
    sidecar: Path | None = None
    run: Path | None = None
    """A saved run to show; then no model is opened."""
    theme: ThemeMode | None = None
    size: tuple[int, int] | None = None
    errand: Errand | None = None
    history_dir: Path | None = None
    """Folder of the conversations; None: beside the settings."""
    log_dir: Path | None = None
    """Folder of the log; None: it is kept in memory only."""


def run(request: Request, load_model: LoadModel, demo: Callable[[], Path]) -> int:
    """Open the window and stay until it is closed; returns the exit code."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("draftscope")
    app.setApplicationDisplayName("Draftscope")
    QGuiApplication.setDesktopFileName("draftscope")
    app.setWindowIcon(program_icon())
    app.setQuitOnLastWindowClosed(False)  # the window says when its engine has ended
    log.start(request.log_dir)
    logging.getLogger("draftscope").info("Draftscope %s starts on %s", __version__, platform.platform())
    file = SettingsFile(request.settings_dir)
    stylist = Stylist(app, request.theme or file.load().theme)
    window = MainWindow(EngineHandle(load_model), file, stylist, demo, request.history_dir)
    crash = CrashReporter(window)
    window.engine.fault.connect(crash.report)
    signals = SignalWatch(window.close, window)
    drive = Drive(window, request.errand or Errand())
    window.closed.connect(app.quit)
    if request.size:
        window.resize(QSize(*request.size))
    window.show()
    if request.run is not None:
        QTimer.singleShot(0, window, lambda path=request.run: drive.show_run(path))
    first = request.model or (demo() if not window.memory.settings.recent else None)
    if first is not None and request.run is None:
        QTimer.singleShot(0, window, lambda: window.load(first, request.sidecar))
    app.exec()
    crash.release()
    log.stop()
    signals.release()
    if window.engine.running:
        # A read that hangs in the system cannot be called off, and Qt must not tear down a running thread.
        sys.stdout.flush()
        os._exit(drive.code)
    return drive.code
