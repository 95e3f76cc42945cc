"""Tokens to text, one at a time, without broken characters.

A character of several bytes (emoji, CJK) may be spread over tokens, also over the border between two rounds. Its text
comes with the token that completes it; until then its bytes are held.
"""

from __future__ import annotations

import codecs
from typing import Protocol

_new_decoder = codecs.getincrementaldecoder("utf-8")


class TokenBytes(Protocol):
    """What a detokeniser asks of a tokenizer."""

    def output_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to a text: none for special tokens."""


class Detokeniser:
    """The text of a growing reply. What all `push` calls and the final `flush` return together is the decoded whole."""

    def __init__(self, tokenizer: TokenBytes) -> None:
        self._tokenizer = tokenizer
        self._decoder = _new_decoder("replace")

    def push(self, token: int) -> str:
        """The text that this token adds; empty for special tokens and while a character is incomplete."""
        return self._decoder.decode(self._tokenizer.output_bytes(token))

    def flush(self) -> str:
        """The end of the text: U+FFFD if a character stayed incomplete, else nothing. Starts afresh."""
        return self._decoder.decode(b"", final=True)

    @property
    def holding(self) -> bool:
        """Are there bytes of an incomplete character?"""
        return bool(self._decoder.getstate()[0])

    def clone(self) -> Detokeniser:
        """An independent copy at the same place, to look at drafts without taking them."""
        copy = Detokeniser(self._tokenizer)
        copy._decoder.setstate(self._decoder.getstate())
        return copy
