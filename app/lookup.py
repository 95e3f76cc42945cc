"""Drafting by lookup in other conversations: gives a session their tokens, in the engine's thread.

Nothing of them is ever in the context: only guesses come from there, and the model checks every guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Encoder(Protocol):
    """A model, as far as it turns text into tokens."""

    def encode(self, text: str) -> list[int]: ...


class Searcher(Protocol):
    """A session, as far as it can look into other texts."""

    def search_also(self, texts: Sequence[Sequence[int]]) -> None: ...


class Lookup:
    """Keeps the tokens of the texts, so that before each reply only what is new is encoded."""

    def __init__(self) -> None:
        self._model: Encoder | None = None
        self._tokens: dict[str, list[int]] = {}
        self._given: tuple[Searcher, tuple[str, ...]] | None = None
        """The session that was given texts last, and which."""

    def prepare(self, model: Encoder, session: Searcher, texts: Sequence[str]) -> None:
        """Let the session look into these texts from now on, the later ones first, and into no others."""
        wanted = tuple(texts)
        known = self._given[1] if self._given is not None and self._given[0] is session else ()
        if wanted == known:
            return
        if model is not self._model:
            self._model, self._tokens = model, {}
        self._tokens = {text: self._tokens.get(text) or model.encode(text) for text in wanted}
        session.search_also([self._tokens[text] for text in wanted])
        self._given = (session, wanted)

    def forget(self) -> None:
        """Let go of model, session and texts."""
        self._model, self._tokens, self._given = None, {}, None
