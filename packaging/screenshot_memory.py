"""Makes the picture of a streamed model for the documents: strip and lanes in the real window, mid-reply.

python packaging/screenshot_memory.py OUT.png [--model PATH] [--share 0.5] [--theme light] [--rounds 12]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SETTLE_MS = 60
"""For texts that have just changed to be laid out."""
STORY = "Tell me a story about a fox and a lamp."


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Take a picture of the memory panel while a model is streamed.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--share", type=float, default=0.5, help="of the way from the least budget to everything")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--rounds", type=int, default=12, help="rounds to wait for")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="draftscope-picture-") as folder:
        return take(arguments, Path(folder))


def take(arguments: argparse.Namespace, folder: Path) -> int:
    """Open the window, chat, and save the picture once enough rounds and a plan are there."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    import engine
    from app.main_window import MainWindow
    from app.settings import Settings, SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle

    app = QApplication(sys.argv[:1])
    path = engine.demo_path() if arguments.model == "demo" else Path(arguments.model)
    planner = engine.open_planner(path)
    budget = planner.minimum + int(arguments.share * (planner.everything - planner.minimum))
    file = SettingsFile(folder)
    file.save(Settings(budgets={str(path): budget}))
    window = MainWindow(EngineHandle(engine.load_model), file, Stylist(app, arguments.theme), engine.demo_path)
    window.resize(1280, 1080)
    window.show()
    window.docks.toggle("show_memory")
    window.load(path)
    window.controller.send(STORY)
    poll = QTimer(interval=50)
    panel = window.weights.panel

    def look() -> None:
        ready = panel.budget.plan is not None and len(panel.lanes_model.laps) >= arguments.rounds
        if ready or window.message_bar.text:
            poll.stop()
            panel.refresh()
            window.weights.watch.look()
            QTimer.singleShot(SETTLE_MS, save)

    def save() -> None:
        window.grab().save(str(arguments.out))
        window.close()

    poll.timeout.connect(look)
    poll.start()
    window.closed.connect(app.quit)
    code: int = app.exec()
    return code


if __name__ == "__main__":
    sys.exit(main())
