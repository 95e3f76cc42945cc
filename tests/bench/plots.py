"""What open plots cost: `python -m tests.bench.plots`.

The real program answers the same prompt again and again, in turns with the inspector open and closed. Told are the
engine's tokens per second and the CPU time that the window's thread takes for 1000 tokens. On a busy machine only the
latter says much; turns of both kinds meet the same neighbours. The usual model is a tiny one of random weights, which
never ends by itself and has by far more rounds a second to tell of than a model that people use: the worst case.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from app.main_window import MainWindow

PROMPT = "Count from 1 to 60."
TINY = Path(__file__).resolve().parents[1] / "data" / "tiny-dense"


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Measure what open plots cost.")
    parser.add_argument("--turns", type=int, default=6, help="replies with plots open, and as many closed (default: 6)")
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--tokens", type=int, default=1000, help="of each reply (default: 1000)")
    parser.add_argument("--prompt", default=PROMPT)
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        run(arguments, Path(folder))


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Open the window on the model and let it answer."""
    from PySide6.QtWidgets import QApplication

    import engine
    from app.main_window import MainWindow
    from app.program import SWITCH_S
    from app.settings import ReplyChoices, Settings, SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle

    engine.configure_environment()
    sys.setswitchinterval(SWITCH_S)
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    file = SettingsFile(folder)
    file.save(Settings(toured=True, reply=ReplyChoices(max_new_tokens=arguments.tokens)))
    window = MainWindow(EngineHandle(engine.load_model), file, Stylist(app, "light"), engine.demo_path)
    window.resize(1600, 1200)
    window.show()
    window.load(arguments.model)
    while window.controller.model is None:
        app.processEvents()
        time.sleep(0.001)
    window.inspector.complete()
    reply(app, window, arguments.prompt)  # the first one finds everything cold
    figures: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for turn in range(2 * arguments.turns):
        shown = turn % 4 in (0, 3)  # open, closed, closed, open: what drifts meets both alike
        if shown != window.inspector.isVisible():
            window.docks.toggle("show_inspector")
        figures[shown].append(reply(app, window, arguments.prompt))
    tell(figures)
    window.engine.close()
    window.engine.wait(10_000)


def reply(app: QApplication, window: MainWindow, prompt: str) -> tuple[float, float]:
    """(tokens per second, milliseconds of the window's thread for 1000 tokens) of one reply."""
    from PySide6.QtCore import QEventLoop

    window.new_chat()
    app.processEvents()
    loop = QEventLoop()
    window.controller.reply_ended.connect(loop.quit)
    used = time.thread_time()
    window.send(prompt)
    loop.exec()
    used = time.thread_time() - used
    window.controller.reply_ended.disconnect(loop.quit)
    last = window.transcript.last_reply
    assert last is not None
    assert last.stats is not None
    seconds = sum(r.draft_s + r.verify_s for r in last.rounds)
    return last.tokens / seconds, 1e6 * used / last.tokens


def tell(figures: dict[bool, list[tuple[float, float]]]) -> None:
    """Medians, and the ratio of both."""
    print(f"{len(figures[True])} turns each; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    middle = {
        shown: [statistics.median(column) for column in zip(*rows, strict=True)] for shown, rows in figures.items()
    }
    for shown, (speed, cpu) in middle.items():
        print(
            f"plots {'open' if shown else 'closed':<7} {speed:6.1f} tokens/s, window's thread {cpu:6.0f} ms/1000 tokens"
        )
    print(f"tokens/s open against closed: {middle[True][0] / middle[False][0]:.3f}")


if __name__ == "__main__":
    main()
