"""Pictures of transcript, legend, card and inspector for looking at: `python -m tests.app.look FOLDER`.

Light and dark, at 100 and 200 %. The conversation is scripted, so that two versions can be compared side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SIZE = (1280, 800)


def main(folder: Path) -> None:
    """Take the pictures, each scale in a process of its own: Qt reads it once."""
    folder.mkdir(parents=True, exist_ok=True)
    for scale in ("1", "2"):
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "QT_SCALE_FACTOR": scale}
        subprocess.run([sys.executable, "-m", "tests.app.look", str(folder), scale], check=True, env=environment)


def take(folder: Path, scale: str) -> None:
    """The pictures of one scale."""
    from PySide6.QtWidgets import QApplication

    from app.style import Stylist

    app = QApplication([])
    stylist = Stylist(app)
    for mode in ("light", "dark"):
        stylist.set_mode(mode)  # type: ignore[arg-type]
        for refused in (True, False):
            name = f"{mode}-{scale}x{'' if refused else '-reading'}.png"
            _picture(app, stylist, refused).save(str(folder / name))


def _picture(app: object, stylist: object, refused: bool) -> object:
    from PySide6.QtWidgets import QApplication, QHBoxLayout, QVBoxLayout, QWidget

    from app.chat.cells import CellKind
    from app.chat.legend import Legend
    from app.chat.transcript_model import TranscriptModel
    from app.chat.transcript_view import TranscriptView
    from app.inspector.panel import InspectorPanel
    from app.theme import palette_of
    from tests.app.chat import scripted_records as script

    theme = stylist.theme  # type: ignore[attr-defined]
    model = TranscriptModel()
    view, legend, inspector = TranscriptView(model, theme), Legend(theme), InspectorPanel(theme)
    view.show_refused = refused
    window = QWidget()
    window.setPalette(palette_of(theme))
    window.setAutoFillBackground(True)
    row, column = QHBoxLayout(window), QVBoxLayout()
    row.setContentsMargins(0, 0, 0, 0)
    row.addLayout(column, 1)
    row.addWidget(inspector)
    column.addWidget(view, 1)
    below = QHBoxLayout()
    below.setContentsMargins(24, 8, 24, 8)
    below.addWidget(legend)
    column.addLayout(below)
    inspector.setFixedWidth(380)
    window.resize(*SIZE)
    window.show()
    model.add_user(script.QUESTION)
    model.begin_reply()
    records = script.reply(thinking=script.THINKING)
    model.add_records(records)
    inspector.add_records(records)
    inspector.refresh()
    QApplication.processEvents()
    view.verticalScrollBar().setValue(0)
    reply = model.replies[0]
    seen = (i for i in range(len(reply)) if view.viewport().rect().contains(view.rect_of(1, i)))
    view.cursor_cell = next((1, i) for i in seen if reply.kind(i) is CellKind.CORRECTION and i > 40)
    if refused:
        view.pin()
    QApplication.processEvents()
    return window.grab()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        take(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]))
