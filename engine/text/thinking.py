"""Think blocks: a model of this family may reason between `<think>` and `</think>` before it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class TokenIds(Protocol):
    """What is asked of a tokenizer here."""

    def id_of(self, text: str) -> int | None:
        """The id of an added token by its spelling."""


@dataclass(frozen=True, slots=True)
class ThinkTokens:
    """The ids that open and close a think block."""

    open: int
    close: int

    def inside(self, tokens: Sequence[int]) -> bool:
        """Do these tokens end inside an open think block? A template may open one in the prompt."""
        for token in reversed(tokens):
            if token == self.open:
                return True
            if token == self.close:
                return False
        return False


def find_think_tokens(tokenizer: TokenIds) -> ThinkTokens | None:
    """The think tokens of a vocabulary; None if it has no such pair."""
    opening, closing = tokenizer.id_of("<think>"), tokenizer.id_of("</think>")
    return None if opening is None or closing is None else ThinkTokens(opening, closing)
