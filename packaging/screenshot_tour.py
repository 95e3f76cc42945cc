"""Makes the pictures of chat, inspector, library and run comparison, in one window on the demo.

python packaging/screenshot_tour.py FOLDER [--themes light dark] [--size 1280x800] [--everything]

`--everything` adds each panel and dialog, for looking at; with QT_SCALE_FACTOR=2 in the environment as sharp screens
show them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.main_window import MainWindow

STORY = "Tell me a story about a fox and a lamp."
POLL_MS, SETTLE_POLLS = 50, 14
Step = tuple[str, "QWidget | None", Callable[[], bool]]
"""Name of the picture or "", what is in it, and what to wait for before."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Take the pictures of the window's parts.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--themes", nargs="+", choices=("light", "dark"), default=["light", "dark"])
    parser.add_argument("--size", default="1280x800")
    parser.add_argument("--everything", action="store_true", help="each panel and dialog too")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="draftscope-picture-") as folder:
        return take(arguments, Path(folder))


def take(arguments: argparse.Namespace, folder: Path) -> int:
    """Open the window and go through the steps."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    import engine
    from app.main_window import MainWindow
    from app.settings import Settings, SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle

    app = QApplication(sys.argv[:1])
    make_models(folder / "models")
    file = SettingsFile(folder)
    choices = replace(Settings().reply, new_seed=False)
    file.save(Settings(reply=choices, folders=(str(folder / "models"),), toured=True))
    stylist = Stylist(app, arguments.themes[0])
    window = MainWindow(EngineHandle(engine.load_model), file, stylist, engine.demo_path)
    width, height = (int(part) for part in arguments.size.split("x"))
    window.resize(width, height)
    window.show()
    steps = tour(window, arguments.themes, folder / "models", arguments.everything)
    waiting: list[Step] = [next(steps)]
    quiet = [0]
    poll = QTimer(interval=POLL_MS)

    def look() -> None:
        name, shown, ready = waiting[0]
        quiet[0] = quiet[0] + 1 if ready() else 0
        if quiet[0] < (SETTLE_POLLS if name else 1):
            return
        quiet[0] = 0
        if name and shown is not None:
            target = arguments.folder / f"{name}.png"
            shown.grab().save(str(target))
            print(target, flush=True)
        try:
            waiting[0] = next(steps)
        except StopIteration:
            poll.stop()
            window.close()

    poll.timeout.connect(look)
    poll.start()
    window.closed.connect(app.quit)
    code: int = app.exec()
    return code


def make_models(folder: Path) -> None:
    """A watched folder: two copies of the demo with a sidecar beside one of them, and a damaged file."""
    import engine

    for name in ("tiny-storyteller", "tiny-storyteller-tuned"):
        shutil.copytree(engine.demo_path(), folder / name, ignore=shutil.ignore_patterns("scripts", "mtp-*"))
    shutil.copy(engine.demo_sidecar_path(), folder / "tiny-storyteller" / "mtp-trimmed.safetensors")
    (folder / "half-copied-27B-Q4_K_M.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(20))


def tour(window: MainWindow, themes: list[str], models: Path, everything: bool) -> Iterator[Step]:
    """One step after another; each is done when the next is asked for."""

    def wait(until: Callable[[], Any]) -> Step:
        return "", None, lambda: bool(until())

    def picture(name: str, shown: QWidget = window) -> Iterator[Step]:
        for theme in themes:
            window.set_theme_mode(theme)  # type: ignore[arg-type]
            yield f"{name}-{theme}", shown, lambda: True

    if everything:
        yield from picture("welcome-empty")
    window.open_demo()
    yield wait(lambda: window.controller.model)
    window.inspector.complete()
    if everything:
        yield from picture("welcome")
    yield from replies(window, wait)
    window.inspector.complete()
    yield from picture("chat")
    middle = window.inspector.model.rounds // 2
    window.inspector.scrubber.go(middle)
    yield from picture("inspector")
    window.inspector.scrubber.go(None)
    if everything:
        window.inspector.tabs.setCurrentIndex(1)
        yield from picture("rounds")
        window.inspector.tabs.setCurrentIndex(0)
    window.switch_view()
    yield from picture("reading")
    window.switch_view()
    first, second = sorted(run.path for run in window.runs.store.summaries())[:2]
    window.runs.compare(first, second)
    assert window.runs.comparison is not None
    yield from picture("comparison")
    window.runs.comparison.tabs.setCurrentIndex(1)
    yield from picture("comparison-plots")
    window.runs.show_chat()
    yield from library(window, models, picture, wait)
    if everything:
        yield from rooms(window, picture)


def replies(window: MainWindow, wait: Callable[[Callable[[], Any]], Step]) -> Iterator[Step]:
    """The same prompt twice, without drafts and with them; each reply is kept as a run."""
    drafter = window.panel.drafter
    usual = drafter.currentData()
    for number, chosen in enumerate(("none", usual), 1):
        drafter.setCurrentIndex(drafter.findData(chosen))
        window.new_chat()
        window.send(STORY)
        yield wait(lambda: not window.controller.replying and window.transcript.entries)
        yield wait(lambda number=number: len(window.runs.store.summaries()) >= number)  # type: ignore[misc]


def library(
    window: MainWindow,
    models: Path,
    picture: Callable[..., Iterator[Step]],
    wait: Callable[[Callable[[], Any]], Step],
) -> Iterator[Step]:
    """The library, with a checkpoint chosen."""
    window.actions_by_name["library"].trigger()
    dialog = window.rooms.shelf.dialog
    assert dialog is not None
    yield wait(lambda: dialog.model.row_of(str(models / "tiny-storyteller")) >= 0)
    dialog.list.setCurrentIndex(dialog.model.index(dialog.model.row_of(str(models / "tiny-storyteller"))))
    yield from picture("library", dialog)
    dialog.hide()


def rooms(window: MainWindow, picture: Callable[..., Iterator[Step]]) -> Iterator[Step]:
    """Every other panel and dialog."""
    from PySide6.QtWidgets import QApplication, QDialog, QWidget

    for name in ("show_memory", "show_runs", "show_settings"):
        window.docks.toggle(name)
        yield from picture(name.removeprefix("show_"))
    window.docks.toggle("show_inspector")
    for name in ("palette", "preferences", "log", "doctor", "system_prompt", "shortcuts", "about", "tour"):
        if name not in window.actions_by_name:
            continue
        window.actions_by_name[name].trigger()
        opened = [w for w in QApplication.topLevelWidgets() if isinstance(w, QWidget) and w.isVisible() and w != window]
        yield from picture(name, opened[-1] if opened else window)
        for widget in opened:
            with suppress(RuntimeError):
                widget.reject() if isinstance(widget, QDialog) else widget.hide()


if __name__ == "__main__":
    sys.exit(main())
