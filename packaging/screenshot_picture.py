"""Makes the picture of a chat about a picture, for the documents: the real window on a tiny model that sees.

python packaging/screenshot_picture.py OUT.png [--model PATH] [--picture FILE] [--theme light]
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

TINY = ROOT / "tests" / "data" / "tiny-vl"
SETTLE_MS = 600
TOKENS = 64


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Take a picture of a chat with a picture in it.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--picture", type=Path, default=TINY / "images" / "b.png")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="draftscope-picture-") as folder:
        return take(arguments, Path(folder))


def take(arguments: argparse.Namespace, folder: Path) -> int:
    """Open the window, attach, ask, and save the picture when the reply is there."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    import engine
    from app.main_window import MainWindow
    from app.settings import ReplyChoices, Settings, SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle

    app = QApplication(sys.argv[:1])
    file = SettingsFile(folder)
    file.save(Settings(reply=ReplyChoices(max_new_tokens=TOKENS), reading_view=True))
    window = MainWindow(EngineHandle(engine.load_model), file, Stylist(app, arguments.theme), engine.demo_path)
    window.resize(1280, 800)
    window.show()

    def ask() -> None:
        window.files.add([arguments.picture])
        window.files.send("What does this picture show?")
        window.files.add([arguments.picture])  # and the next one waits in the composer

    def save() -> None:
        window.grab().save(str(arguments.out))
        window.close()

    window.controller.loaded.connect(lambda _info: QTimer.singleShot(0, ask))
    window.controller.reply_ended.connect(lambda _last: QTimer.singleShot(SETTLE_MS, save))
    window.closed.connect(app.quit)
    window.load(arguments.model)
    code: int = app.exec()
    return code


if __name__ == "__main__":
    sys.exit(main())
