"""The terminal: a progress line on stderr, colours for verdicts, and Ctrl+C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.decoding.records import LoadProgress

if TYPE_CHECKING:
    from engine.decoding.records import Round

_RESET = "\x1b[0m"
_STYLES = {"accepted": "\x1b[4m", "correction": "\x1b[1m", "refused": "\x1b[2;9m"}
"""Underlined, bold, and struck through in grey: cues that need no colour."""


PATIENCE_S = 5.0
"""Silence that a person takes for work, not for a fault."""


class Console:
    """What a person at the terminal sees besides the result. Quiet when stderr goes elsewhere, or in scripts' mode."""

    def __init__(self, quiet: bool = False) -> None:
        self._live = not quiet and sys.stderr.isatty()
        self._quiet = quiet
        self._shown = False
        self._kernels_since: float | None = None
        self._told = False

    def progress(self, record: LoadProgress) -> None:
        """One line that is overwritten in place; where that cannot be, one sentence if the kernels take long."""
        if not self._live:
            if record.stage == "kernels":
                self._tell_of_kernels()
        else:
            share = f" {100 * record.done // record.total} %" if record.unit == "bytes" and record.total else ""
            sys.stderr.write(f"\r\x1b[K{record.message}{share}")
            sys.stderr.flush()
            self._shown = True

    def _tell_of_kernels(self) -> None:
        now = time.monotonic()
        if self._kernels_since is None:  # what took long before, a slow disk or a busy machine, was not the kernels
            self._kernels_since = now
        if not self._told and now - self._kernels_since > PATIENCE_S:
            self._told = True
            self.say("Preparing kernels for this CPU: this takes a minute or two, once.")

    def bar(self, doing: str) -> Callable[[int, int], None]:
        """A function of (bytes done, bytes in all) that shows how far something is."""
        return lambda done, total: self.progress(LoadProgress("weights", doing, done, total, "bytes"))

    def clear(self) -> None:
        """Take the progress line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False

    def say(self, sentence: str) -> None:
        """A sentence on stderr."""
        self.clear()
        if not self._quiet:
            print(sentence, file=sys.stderr, flush=True)


def counted(number: int, word: str) -> str:
    """`1 token`, `2 tokens`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def wants_colour(choice: str) -> bool:
    """`always`, `never`, or `auto`: on a terminal that has not asked for none (NO_COLOR, a dumb terminal)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def styled_round(record: Round, colour: bool, show_refused: bool) -> str:
    """The text that a round adds, its verdicts as type styles if `colour`."""
    parts = []
    for token in record.committed:
        if show_refused and token.origin == "correction":
            parts += [_styled(draft.text, "refused", colour) for draft in record.drafts if draft.verdict == "rejected"]
        parts.append(_styled(token.text, token.origin, colour))
    return "".join(parts)


def _styled(text: str, style: str, colour: bool) -> str:
    """`text` with a style that ends before each line break, so that it never runs over a whole line of the terminal."""
    start = _STYLES.get(style)
    if not colour or start is None or not text:
        return text
    return "\n".join(f"{start}{line}{_RESET}" if line else "" for line in text.split("\n"))


@contextlib.contextmanager
def interruptible() -> Iterator[CancelToken]:
    """A cancel token that Ctrl+C sets. A second Ctrl+C interrupts at once."""
    cancel = CancelToken()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.cancel()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread (tests): nothing to install
        yield cancel
        return
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)
