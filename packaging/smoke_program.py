"""What is tried of an installed program: its first and second start, a reply, a picture of the screen."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from smoke import PROMPT, SmokeError, answer, finish, hold, is_picture

READY = "model usable"
_LINE = re.compile(r"^(.+?)\s+(\d+) ms", re.MULTILINE)
_LONGEST_S = 300
FAULTS = ("Traceback", "Could not load the Qt platform plugin", "ModuleNotFoundError", "Aborted", "cannot open shared")

Start = Callable[[Sequence[str]], list[str]]
"""From a program's words (`["draftscope", "--timing"]`) to those that start it where and as whom it is tried."""


def milestones(told: str) -> dict[str, int]:
    """What `--timing` told: milliseconds from the beginning of the process."""
    return {name: int(number) for name, number in _LINE.findall(told)}


def start_window(start: Start, who: str, picture: Path | None = None, display: str = "") -> int:
    """Start the window as a person does, wait until its model is usable, picture the screen, and close it.

    Returns:
        Milliseconds to the usable window.
    """
    window = subprocess.Popen(
        start(["draftscope", "--timing"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    told = _read_until(window, READY)
    if picture is not None and READY in told:
        time.sleep(2)  # the plots follow
        subprocess.run(["import", "-display", display, "-window", "root", str(picture)], check=True)
    window.send_signal(signal.SIGTERM)
    _, rest = window.communicate(timeout=60)
    told += rest.decode(errors="replace")
    reached = milestones(told)
    if READY not in reached or window.returncode != 0 or any(fault in told for fault in FAULTS):
        raise SmokeError(f"{who}: the window ended with {window.returncode}: {told[-3000:]}")
    times = ", ".join(f"{name} {number} ms" for name, number in reached.items())
    print(f"held: {who}: a window ({times}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)", flush=True)
    return reached[READY]


def _read_until(process: subprocess.Popen[bytes], words: str) -> str:
    """What a process writes to stderr until these words come, or it ends, or it takes too long."""
    assert process.stderr is not None
    told, deadline = b"", time.monotonic() + _LONGEST_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while words.encode() not in told and time.monotonic() < deadline:
            if selector.select(1.0):
                piece = os.read(process.stderr.fileno(), 1 << 16)
                if not piece:
                    break
                told += piece
    return told.decode(errors="replace")


def ask_window(start: Start, who: str, picture: str, seen: Path) -> None:
    """Let the window answer a question and picture itself; `seen` is where the picture is seen from here."""
    words = ["draftscope", "--model", "demo", "--prompt", PROMPT, "--screenshot", picture, "--size", "1280x800"]
    _run(start([*words, "--quit-when-done"]), who)
    hold(is_picture(seen), f"{who}: the window answers", f"{who}: no picture of the window")


def ask_terminal(start: Start, who: str) -> None:
    """Let the terminal's program answer."""
    words = ["draftscope-cli", "generate", "demo", "--prompt", PROMPT, "--json", "--max-new", "40"]
    text = answer(_run(start(words), who))
    hold("Paris" in text, f"{who}: the terminal answers {text.strip()!r}", f"{who}: the terminal answered {text!r}")


def _run(command: Sequence[str], who: str) -> str:
    done = finish(command, _LONGEST_S)
    if done.returncode != 0 or any(fault in done.stderr for fault in FAULTS):
        raise SmokeError(f"{who}: {' '.join(command)} ended with {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout
