"""The caches of one conversation, trunk and drafters together: what they hold and how a prompt is read into them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.branches import Branch, BranchShelf
from engine.cancel import CancelToken
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.protocols import Drafter
from engine.decoding.records import PrefillProgress
from engine.model.target import TargetSession
from engine.options import DraftOptions
from engine.prefix_cache import PrefixCache, TurnCheckpoint
from engine.prompt import PlacedPicture, Prompt

if TYPE_CHECKING:
    from engine.loaded_model import Model

FloatArray = npt.NDArray[np.float32]

_CHUNK = 128
"""Prompt tokens read in one pass: enough that weights are read from memory rarely, few enough to report progress."""


class Conversation:
    """Trunk caches, drafter caches and the tokens they stand for, always in step."""

    def __init__(self, model: Model) -> None:
        self.target = model.new_target()
        self.prefix = PrefixCache()
        self.branches = BranchShelf()
        self._tokens: list[int] = []  # ids in the caches, where the prefix has keys
        self._mtp_model = model.new_mtp()
        self._no_mtp = model.info.draft_note
        self._vision = model.vision
        self._soft_drafts = model.soft_drafts
        self._mtp = None if self._mtp_model is None else MtpDrafter(self._mtp_model, model.end_tokens)
        self._ngram = NgramDrafter(model.end_tokens)
        self._combined = None if self._mtp is None else CombinedDrafter(self._mtp, self._ngram)
        self._wants_mtp = False
        self.drafter: Drafter | None = None
        """For the next reply, as of the last `rewind`."""

    def choose_drafter(self, options: DraftOptions) -> str:
        """Decide what drafts in the next reply; returns why nothing does, if something was wanted. Call before
        `rewind`."""
        names = options.drafter.split("+") if options.enabled else []
        self._wants_mtp = "mtp" in names and self._mtp is not None
        note = f"0 drafts: {self._no_mtp}." if "mtp" in names and self._mtp is None else ""
        if self._wants_mtp and "ngram" in names:
            self.drafter = self._combined
        elif self._wants_mtp:
            self.drafter = self._mtp
        else:
            self.drafter = self._ngram if "ngram" in names else None
        return note

    @property
    def wants_mtp(self) -> bool:
        """The next reply drafts with the MTP layer."""
        return self._wants_mtp

    def search_also(self, texts: Sequence[Sequence[int]]) -> None:
        """See `NgramDrafter.search_also`."""
        self._ngram.search_also(texts)

    def rewind(self, prompt: Prompt) -> int:
        """Keep as much of the caches as `prompt` begins with, or change to a branch that was left and knows more of it;
        at least the prompt's last token is left to read. Returns the number of tokens kept."""
        current = Branch(self.target, self.prefix, self._tokens, self._mtp_model, self._mtp)
        branch = self.branches.choose(current, prompt.keys, self._wants_mtp)
        if branch is not current:
            self._change_to(branch)
        keep = branch.kept(prompt.keys, self._wants_mtp)
        if keep == self.target.position:
            self.target.forget_unread_pictures()  # of a prompt whose reading was stopped
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

    def _change_to(self, branch: Branch) -> None:
        self.target, self.prefix, self._tokens = branch.target, branch.prefix, branch.tokens
        self._mtp_model, self._mtp = branch.mtp_model, branch.mtp
        if self._combined is not None and self._mtp is not None:
            self._combined.replace_layer(self._mtp)
        if self.drafter is not None and isinstance(self.drafter, MtpDrafter):
            self.drafter = self._mtp

    def _truncate(self, position: int, hidden: FloatArray | None) -> None:
        self.prefix.truncate(position)
        if self._mtp is not None and self._mtp.position >= position:
            self._mtp.truncate(position, hidden)
        del self._tokens[position:]
        self._ngram.truncate(0)
        self._ngram.extend(self._tokens)

    def read(self, prompt: Prompt, cancel: CancelToken | None) -> Iterator[PrefillProgress]:
        """Read a prompt from where `rewind` left off, with a checkpoint at each of its boundaries. The logits after the
        last token are then in `logits`."""
        tokens, boundaries = prompt.tokens, prompt.boundaries
        reused, start = self.target.position, time.perf_counter()
        hidden: FloatArray | None = None
        if self._mtp_model is not None:
            self._mtp_model.cancel = cancel
        for stage in self._look_at(prompt.pictures, cancel):
            yield PrefillProgress(reused, len(tokens), reused, time.perf_counter() - start, stage)
        while self.target.position < len(tokens):
            position = self.target.position
            yield PrefillProgress(position, len(tokens), reused, time.perf_counter() - start)
            end = min([position + _CHUNK, len(tokens), *(b for b in boundaries if b > position)])
            hidden = self._read_chunk(tokens[position:end], prompt.keys[position:end], cancel)
            if end in boundaries:
                self.prefix.add(TurnCheckpoint(end, self.target.snapshot(), hidden[-1:].copy()))
        assert hidden is not None
        self.logits: FloatArray = self.target.logits(hidden[-1:])[0]
        self.prompt_end = self.target.snapshot()
        yield PrefillProgress(len(tokens), len(tokens), reused, time.perf_counter() - start)

    def _look_at(self, pictures: Sequence[PlacedPicture], cancel: CancelToken | None) -> Iterator[str]:
        """Put the embeddings of the pictures that are not read yet in their places. Yields phrases for the person."""
        if self._mtp_model is not None:
            self._mtp_model.spans = [picture.span for picture in pictures]
            for span in self._mtp_model.soft_tokens.keys() - set(self._mtp_model.spans):
                del self._mtp_model.soft_tokens[span]
        known = set(self.target.state.spans)
        for picture in pictures:
            if picture.span in known or self._vision is None:
                continue
            steps = self._vision.encode_stepwise(picture.patches.values, picture.patches.grid, cancel)
            while True:
                try:
                    yield f"looking at {picture.name}: block {next(steps) + 1} of {self._vision.config.depth}"
                except StopIteration as end:
                    self.target.place_picture(picture.span, end.value)
                    if self._soft_drafts and self._mtp_model is not None:
                        self._mtp_model.soft_tokens[picture.span] = end.value
                    break

    def _read_chunk(self, chunk: Sequence[int], keys: Sequence[int], cancel: CancelToken | None) -> FloatArray:
        hidden = self.target.forward(chunk, cancel)
        self.prefix.tokens.extend(keys)
        self._tokens.extend(chunk)
        self._ngram.extend(chunk)
        if self._wants_mtp and self._mtp is not None:
            self._mtp.extend(chunk, hidden)
        return hidden

    @contextmanager
    def replay(self) -> Iterator[TargetSession]:
        """Go back to the end of the last prompt, for someone who reads the reply again; on leaving, whatever has been
        read by then counts as kept."""
        self.target.restore(self.prompt_end)
        try:
            yield self.target
        finally:
            self._truncate(self.target.position, None)

    def settle(self, prompt: Prompt, reply: Sequence[int]) -> None:
        """A reply is over: note which of its tokens the caches hold (the last one was never read)."""
        self.prefix.tokens = [*prompt.keys, *reply][: self.target.position]
        self._tokens = [*prompt.tokens, *reply][: self.target.position]
        self.prefix.checkpoints = [c for c in self.prefix.checkpoints if c.position <= self.target.position]
