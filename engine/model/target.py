"""The trunk with the caches of one conversation: `engine.decoding.protocols.TargetModel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.cancel import CancelToken
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.model.forward_pass import FloatArray
from engine.model.positions import VisionSpan
from engine.model.state import TrunkSnapshot, TrunkState
from engine.model.trunk import Trunk


class TargetSession:
    """Reads tokens, takes the last ones back exactly, and can return to snapshots of its own past."""

    def __init__(
        self,
        trunk: Trunk,
        vocabulary: int,
        context: int,
        kv: KvType = KV_TYPES["f32"],
        state: TrunkState | None = None,
    ) -> None:
        """`kv`: what keys and values are stored as, where a new state begins."""
        self._trunk = trunk
        self._vocabulary = vocabulary
        self._context = context
        self._state = state or TrunkState(trunk.config, context, kv)
        self._pictures: dict[VisionSpan, FloatArray] = {}
        self._cancel: CancelToken | None = None  # of the last pass; its head may have to wait for the disk, too

    @property
    def position(self) -> int:
        return self._state.position

    @property
    def vocabulary(self) -> int:
        return self._vocabulary

    @property
    def context(self) -> int:
        return self._context

    @property
    def state(self) -> TrunkState:
        return self._state

    def forward(self, tokens: Sequence[int], cancel: CancelToken | None = None) -> FloatArray:
        self._cancel = cancel
        overrides = list(self._overrides(self.position, self.position + len(tokens)))
        return self._trunk.forward(self._state, tokens, cancel, overrides)

    def place_picture(self, span: VisionSpan, embeddings: FloatArray) -> None:
        """A picture's embeddings [tokens, H] will stand at `span`, behind everything read and placed so far; the tokens
        to be read there are placeholders."""
        last = self._state.spans[-1].end if self._state.spans else 0
        if span.start < max(last, self.position) or len(embeddings) != span.tokens:
            raise ValueError(
                f"{span} with {len(embeddings)} embeddings does not fit behind index {max(last, self.position)}"
            )
        self._state.spans.append(span)
        self._pictures = {known: self._pictures[known] for known in self._state.spans[:-1]} | {span: embeddings}

    def forget_unread_pictures(self) -> None:
        """Pictures that were placed, but not read, are gone: other tokens will stand there."""
        self._state.forget_from(self.position)

    def _overrides(self, start: int, end: int) -> Iterator[tuple[int, FloatArray]]:
        """(row, embeddings) for the part of each picture that lies in [start, end)."""
        for span in self._state.spans:
            first, last = max(span.start, start), min(span.end, end)
            if first < last:
                yield first - start, self._pictures[span][first - span.start : last - span.start]

    def logits(self, hidden: FloatArray) -> FloatArray:
        return self._trunk.logits(hidden, self._cancel)[:, : self._vocabulary]

    def rollback(self, position: int) -> None:
        self._trunk.rollback(self._state, position)

    def snapshot(self) -> TrunkSnapshot:
        return self._state.snapshot()

    def restore(self, snapshot: TrunkSnapshot) -> None:
        self._state.restore(snapshot)

    def reset(self) -> None:
        self._state.reset()

    def clone(self) -> TargetSession:
        """An independent session with the same past."""
        other = TargetSession(self._trunk, self._vocabulary, self._context, state=self._state.clone())
        other._pictures = dict(self._pictures)
        return other
