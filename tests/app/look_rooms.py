"""Pictures of the windows beside the chat for looking at: `python -m tests.app.look_rooms FOLDER`.

Light and dark, at 100 and 200 %, with the demo and folders made for the purpose.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def main(folder: Path) -> None:
    """Take the pictures, each scale in a process of its own: Qt reads it once."""
    folder.mkdir(parents=True, exist_ok=True)
    for scale in ("1", "2"):
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "QT_SCALE_FACTOR": scale}
        subprocess.run([sys.executable, "-m", "tests.app.look_rooms", str(folder), scale], check=True, env=environment)


def make_models(folder: Path) -> None:
    """A watched folder: two copies of the demo with a sidecar beside one of them, and a damaged file."""
    import engine

    for name in ("tiny-storyteller", "tiny-storyteller-tuned"):
        shutil.copytree(engine.demo_path(), folder / name, ignore=shutil.ignore_patterns("scripts", "mtp-*"))
    shutil.copy(engine.demo_sidecar_path(), folder / "tiny-storyteller" / "mtp-trimmed.safetensors")
    (folder / "half-copied-27B-Q4_K_M.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(20))


def take(folder: Path, scale: str) -> None:
    """The pictures of one scale."""
    import tempfile
    import time

    from PySide6.QtWidgets import QApplication

    import engine
    from app.main_window import MainWindow
    from app.settings import SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle
    from tests.app.scripted import Script

    app = QApplication([])
    stylist = Stylist(app)
    with tempfile.TemporaryDirectory() as place:
        make_models(Path(place) / "models")
        handle = EngineHandle(Script().load_model)
        window = MainWindow(handle, SettingsFile(Path(place)), stylist, engine.demo_path)
        window.resize(1280, 800)
        window.show()

        def settle(seconds: float = 0.5) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                app.processEvents()

        for mode in ("light", "dark"):
            stylist.set_mode(mode)  # type: ignore[arg-type]
            window.memory.change(folders=())
            for name, shown in pictures(window, Path(place) / "models", settle):
                shown.grab().save(str(folder / f"{name}-{mode}-{scale}x.png"))
                if shown is not window:
                    shown.hide()
        window.rooms.close()
        handle.close()
        handle.wait(5000)


def pictures(window: object, models: Path, settle: object) -> object:
    """(name, widget) of everything worth a picture, each ready when it is yielded."""
    rooms, actions, memory = window.rooms, window.actions_by_name, window.memory  # type: ignore[attr-defined]
    actions["library"].trigger()
    settle(1.0)  # type: ignore[operator]
    rooms.shelf.dialog.hide()
    actions["tour"].trigger()
    settle()  # type: ignore[operator]
    yield "tour-1", window
    for _ in range(2):
        rooms.tour.next.click()
    settle()  # type: ignore[operator]
    yield "tour-3", window
    rooms.tour.next.click()
    settle()  # type: ignore[operator]
    yield "tour-4", window
    rooms.tour.next.click()
    rooms.shelf.dialog.show()
    yield "library-empty", rooms.shelf.dialog
    memory.change(folders=(str(models),))
    actions["library"].trigger()
    settle(1.5)  # type: ignore[operator]
    dialog = rooms.shelf.dialog
    dialog.list.setCurrentIndex(dialog.model.index(dialog.model.row_of(str(models / "tiny-storyteller"))))
    dialog.list.setFocus()
    settle()  # type: ignore[operator]
    yield "library", dialog
    dialog.show()
    dialog.list.setCurrentIndex(dialog.model.index(len(dialog.model.rows) - 1))
    settle()  # type: ignore[operator]
    yield "library-damaged", dialog
    actions["palette"].trigger()
    rooms.palette.field.setText("op")
    settle()  # type: ignore[operator]
    yield "palette", rooms.palette
    for name in ("preferences", "log", "doctor"):
        actions[name].trigger()
        settle(0.8)  # type: ignore[operator]
        yield name, getattr(rooms, name)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        take(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]))
