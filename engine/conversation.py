"""The caches of one conversation, trunk and drafters together: what they hold, what can be kept, how a prompt is read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.protocols import Drafter
from engine.decoding.records import PrefillProgress
from engine.options import DraftOptions
from engine.prefix_cache import PrefixCache, TurnCheckpoint

if TYPE_CHECKING:
    from engine.loading import Model

FloatArray = npt.NDArray[np.float32]

_CHUNK = 128
"""Prompt tokens read in one pass: enough that weights are read from memory rarely, few enough to report progress."""


class Conversation:
    """Trunk caches, drafter caches and the tokens they stand for, always in step."""

    def __init__(self, model: Model) -> None:
        self.target = model.new_target()
        self.prefix = PrefixCache()
        self._mtp_model = model.new_mtp()
        self._no_mtp = model.info.draft_note
        self._end_tokens = model.end_tokens
        self._mtp = None if self._mtp_model is None else MtpDrafter(self._mtp_model, model.end_tokens)
        self._ngram = NgramDrafter(model.end_tokens)
        self._wants_mtp = False
        self._drafter: Drafter | None = None

    def choose_drafter(self, options: DraftOptions) -> tuple[Drafter | None, str]:
        """The drafter for the next reply, and why there is none if one was wanted. Call before `rewind`."""
        names = options.drafter.split("+") if options.enabled else []
        self._wants_mtp = "mtp" in names and self._mtp is not None
        note = f"0 drafts: {self._no_mtp}." if "mtp" in names and self._mtp is None else ""
        if self._wants_mtp and "ngram" in names and self._mtp is not None:
            self._drafter = CombinedDrafter(self._mtp, self._ngram)
        elif self._wants_mtp:
            self._drafter = self._mtp
        else:
            self._drafter = self._ngram if "ngram" in names else None
        return self._drafter, note

    def rewind(self, tokens: Sequence[int]) -> int:
        """Keep as much of the caches as `tokens` begins with; at least its last token is left to read.
        Returns the number of tokens kept."""
        keep = min(self.prefix.common(tokens), len(tokens) - 1)
        if self._wants_mtp and self._mtp is not None:
            keep = min(keep, self._mtp.position)  # it slept through replies without it
        if keep == self.target.position:
            self._truncate(keep, None)
            return keep
        checkpoint = self.prefix.latest(keep)
        if checkpoint is None:
            self.target.reset()
            self._truncate(0, None)
            return 0
        self.target.restore(checkpoint.snapshot)
        self._truncate(checkpoint.position, checkpoint.last_hidden)
        return checkpoint.position

    def _truncate(self, position: int, hidden: FloatArray | None) -> None:
        self.prefix.truncate(position)
        if self._mtp is not None and self._mtp.position >= position:
            self._mtp.truncate(position, hidden)
        self._ngram.truncate(0)
        self._ngram.extend(self.prefix.tokens)

    def read(
        self, tokens: Sequence[int], boundaries: Sequence[int], cancel: CancelToken | None
    ) -> Iterator[PrefillProgress]:
        """Read `tokens` from where `rewind` left off, with a checkpoint at each of `boundaries`. The logits after the
        last token are then in `logits`."""
        reused, start = self.target.position, time.perf_counter()
        hidden: FloatArray | None = None
        while self.target.position < len(tokens):
            position = self.target.position
            yield PrefillProgress(position, len(tokens), reused, time.perf_counter() - start)
            end = min([position + _CHUNK, len(tokens), *(b for b in boundaries if b > position)])
            hidden = self._read_chunk(tokens[position:end], cancel)
            if end in boundaries:
                self.prefix.add(TurnCheckpoint(end, self.target.snapshot(), hidden[-1:].copy()))
        assert hidden is not None
        self.logits: FloatArray = self.target.logits(hidden[-1:])[0]
        yield PrefillProgress(len(tokens), len(tokens), reused, time.perf_counter() - start)

    def _read_chunk(self, chunk: Sequence[int], cancel: CancelToken | None) -> FloatArray:
        hidden = self.target.forward(chunk, cancel)
        self.prefix.tokens.extend(chunk)
        self._ngram.extend(chunk)
        if self._wants_mtp and self._mtp is not None:
            self._mtp.extend(chunk, hidden)
        return hidden

    def settle(self, prompt: Sequence[int], reply: Sequence[int]) -> None:
        """A reply is over: note which of its tokens the caches hold (the last one was never read)."""
        self.prefix.tokens = [*prompt, *reply][: self.target.position]
        self.prefix.checkpoints = [c for c in self.prefix.checkpoints if c.position <= self.target.position]
