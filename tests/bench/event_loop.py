"""How long the window's event loop stands still while a reply streams: `python -m tests.bench.event_loop`.

A scripted engine says 400 tokens a second into a chat of 100,000 tokens, with every plot open. A timer of 5 ms tells
how long the loop did not come round; its thread's CPU time says how much of that was the window's own work and not that
of other programs on the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TOKENS_PER_S = 400
TICK_MS = 5


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Measure the gaps of the window's event loop.")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to stream (default: 20)")
    parser.add_argument("--tokens", type=int, default=100_000, help="length of the chat before (default: 100000)")
    parser.add_argument("--closed", action="store_true", help="with the inspector closed")
    parser.add_argument("--profile", metavar="FILE", help="write a cProfile of the window's thread")
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        run(arguments, Path(folder))


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """One measurement in a window of its own."""
    from PySide6.QtWidgets import QApplication

    from app.main_window import MainWindow
    from app.settings import SettingsFile
    from app.style import Stylist
    from app.worker import EngineHandle
    from tests.app.chat import scripted_records
    from tests.app.scripted import Script

    app = QApplication.instance() or QApplication([])
    words = tuple(f"word{n % 97}" for n in range(int(arguments.seconds * TOKENS_PER_S) + 400))
    script = Script(words=words, pace_s=2.8 / TOKENS_PER_S)
    window = MainWindow(EngineHandle(script.load_model), SettingsFile(folder), Stylist(app, "light"), lambda: folder)
    window.resize(1600, 1400)
    window.show()
    window.load(Path("/models/demo"))
    wait(app, lambda: window.controller.model is not None)
    rounds = scripted_records.long_reply(arguments.tokens)
    begun = time.perf_counter()
    window.transcript.begin_reply()
    for first in range(0, len(rounds), 256):
        window.transcript.add_records(rounds[first : first + 256])
        window.runs.add_records(tuple(rounds[first : first + 256]))
    window.transcript.end_reply()
    print(f"{arguments.tokens} tokens taken in within {time.perf_counter() - begun:.2f} s")
    if arguments.closed:
        window.docks.toggle("show_inspector")
    window.inspector.complete()
    wait(app, lambda: window.view.document.waiting == 0, 120.0)
    app.processEvents()
    window.send("Go on.")
    wait(app, lambda: window.controller.replying)
    report(window, list(measured(app, arguments)))
    script.go.set()
    window.engine.close()
    window.engine.wait(10_000)


def measured(app: object, arguments: argparse.Namespace) -> Iterator[tuple[float, float]]:
    """(milliseconds, of them CPU time of this thread) between one tick and the next."""
    import cProfile

    from PySide6.QtCore import QEventLoop, Qt, QTimer

    gaps: list[tuple[float, float]] = []
    last = [time.perf_counter(), time.thread_time()]

    def tick() -> None:
        now, used = time.perf_counter(), time.thread_time()
        gaps.append((1e3 * (now - last[0]), 1e3 * (used - last[1])))
        last[:] = now, used

    timer, loop = QTimer(interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer), QEventLoop()
    timer.timeout.connect(tick)
    timer.start()
    QTimer.singleShot(int(1000 * arguments.seconds), loop.quit)
    profile = cProfile.Profile() if arguments.profile else None
    if profile is not None:
        profile.runcall(loop.exec)
        profile.dump_stats(arguments.profile)
    else:
        loop.exec()
    return iter(gaps[2:])


def report(window: object, gaps: list[tuple[float, float]]) -> None:
    """The figures, largest first."""
    tokens = window.transcript.last_reply.tokens  # type: ignore[attr-defined]
    print(f"{tokens} tokens streamed; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for name, values in (("gap", [g for g, _ in gaps]), ("own work in it", [c for _, c in gaps])):
        ordered = sorted(values)
        p99 = ordered[int(0.99 * len(ordered))]
        largest = ", ".join(f"{v:.1f}" for v in ordered[-5:][::-1])
        print(f"{name:>15}: p99 {p99:.1f} ms; largest {largest} ms; over 50 ms: {sum(v > 50 for v in values)}")


def wait(app: object, until: object, seconds: float = 60.0) -> None:
    """Let the window work until something holds."""
    end = time.monotonic() + seconds
    while not until():  # type: ignore[operator]
        app.processEvents()  # type: ignore[attr-defined]
        if time.monotonic() > end:
            sys.exit("The window did not come to rest.")
        time.sleep(0.001)


if __name__ == "__main__":
    main()
