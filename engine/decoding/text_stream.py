"""The text of a reply as it grows: whole characters only, cut exactly at a stop string."""

from __future__ import annotations

from engine.decoding.protocols import Detokeniser


class TextStream:
    """Gives each token the text that it adds.

    Text that might be the beginning of a stop string is held back until it is decided, and then comes with a later
    token: what was shown never has to be taken back.
    """

    def __init__(self, detokeniser: Detokeniser, stop_strings: tuple[str, ...] = (), held: str = "") -> None:
        self._detokeniser = detokeniser
        self._stop_strings = stop_strings
        self._held = held
        self.stopped = False
        """A stop string has come; nothing follows."""

    def clone(self) -> TextStream:
        """An independent copy."""
        other = TextStream(self._detokeniser.clone(), self._stop_strings, self._held)
        other.stopped = self.stopped
        return other

    def push(self, token: int) -> str:
        """The text that `token` adds."""
        return self._release(self._detokeniser.push(token))

    def finish(self) -> str:
        """What was held back, if no stop string has come."""
        if self.stopped:
            return ""
        text = self._release(self._detokeniser.flush()) + self._held
        self._held = ""
        return text

    def preview(self, tokens: tuple[int, ...]) -> list[str]:
        """The text that each of `tokens` would add, one after the other, were there no stop strings."""
        detokeniser = self._detokeniser.clone()
        return [detokeniser.push(token) for token in tokens]

    def _release(self, new: str) -> str:
        text = self._held + new
        found = [at for at in map(text.find, self._stop_strings) if at >= 0]
        if found:
            self._held, self.stopped = "", True
            return text[: min(found)]
        safe = len(text) - max((_overlap(text, stop) for stop in self._stop_strings), default=0)
        self._held = text[safe:]
        return text[:safe]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, but not all of it."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
