"""The multi-token-prediction layer: from a hidden state and the token that follows, a guess at the token after that.

x = fc([norm(embed(x_{i+1})); norm(h_i)]) → full-attention decoder layer at position i → norm → head. The normed output
is also the hidden state of the next recursion. Layout as published (`mtp.*`); the embedding half comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.kernels.context import ComputeContext
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.kernels.matmul import linear
from engine.kernels.matrix import Matrix
from engine.kernels.norm import rms_norm
from engine.model.forward_pass import FloatArray, ForwardPass, forward_pass
from engine.model.layer import DecoderLayer
from engine.model.positions import VisionSpan
from engine.model.state import AttentionCache
from engine.model.trunk import head_logits
from engine.model.workspace import Workspace

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.weights.protocols import WeightSource


class MtpLayer:
    """Weights and arithmetic of the MTP layer; keeps nothing of a conversation (that is `MtpSession`)."""

    def __init__(
        self,
        config: ModelConfig,
        weights: WeightSource,
        context: ComputeContext,
        *,
        draft_ids: npt.NDArray[np.int64] | None = None,
        step_bytes: int = 0,
    ) -> None:
        self.config = config
        self.draft_ids = draft_ids
        self.step_bytes = step_bytes
        self._weights = weights
        self._context = context
        self._workspace = Workspace()
        self._head = "draft_head" if weights.pieces("draft_head") else "head"
        own_table = "mtp.embed_tokens.weight"
        self._table = own_table if weights.has(own_table) else "embed_tokens.weight"
        self._norm_embedding = weights.vector("mtp.pre_fc_norm_embedding.weight")  # [H]
        self._norm_hidden = weights.vector("mtp.pre_fc_norm_hidden.weight")  # [H]
        self._norm = weights.vector("mtp.norm.weight")  # [H]
        self._layer = DecoderLayer(config, weights, unit="mtp", prefix="mtp.layers.0.", kind="full")

    def forward(
        self,
        cache: AttentionCache,
        position: int,
        hidden: FloatArray,
        tokens: Sequence[int],
        spans: Sequence[VisionSpan] = (),
        overrides: Sequence[tuple[int, FloatArray]] = (),
        cancel: CancelToken | None = None,
    ) -> FloatArray:
        """Pair hidden [T, H] of positions `position`… with the tokens that follow [T]; returns new outputs [T, H]."""
        run = forward_pass(self.config, self._context, self._workspace, spans, position, len(tokens))
        matrices = self._weights.acquire("mtp", cancel)
        try:
            residual = self._inputs(run, matrices, hidden, tokens, overrides, cancel)
            self._layer.apply(run, matrices, residual, cache, cancel)
        finally:
            self._weights.release("mtp")
        out = np.empty_like(residual)
        rms_norm(residual, self._norm, np.float32(self.config.rms_eps), out)
        return out

    def _inputs(
        self,
        run: ForwardPass,
        matrices: Mapping[str, Matrix],
        hidden: FloatArray,
        tokens: Sequence[int],
        overrides: Sequence[tuple[int, FloatArray]],
        cancel: CancelToken | None,
    ) -> FloatArray:
        """fc([norm(embedding); norm(hidden)]) [T, H]"""
        width, eps = self.config.hidden_size, np.float32(self.config.rms_eps)
        embedded, normed = run.array("embedded", width), run.array("half", width)
        self._weights.embedding(np.asarray(tokens, np.int64), embedded, table=self._table, cancel=cancel)
        for row, rows in overrides:
            embedded[row : row + len(rows)] = rows
        pair = run.array("pair", 2 * width)
        rms_norm(embedded, self._norm_embedding, eps, normed)
        pair[:, :width] = normed
        rms_norm(np.ascontiguousarray(hidden), self._norm_hidden, eps, normed)
        pair[:, width:] = normed
        residual = run.array("residual", width)
        linear(self._context, matrices["fc.weight"], pair, residual)
        return residual

    def logits(self, output: FloatArray, cancel: CancelToken | None = None) -> FloatArray:
        """New draft logits [T, n] of outputs [T, H]."""
        return head_logits(self._weights, self._head, self._context, output, cancel)


class MtpSession:
    """The MTP layer with the KV cache of one conversation: `engine.decoding.protocols.MtpModel`."""

    def __init__(self, layer: MtpLayer, vocabulary: int, context: int, kv: KvType = KV_TYPES["f32"]) -> None:
        """`kv`: what keys and values are stored as."""
        self._layer = layer
        self._vocabulary = vocabulary
        self._context = context
        self._cache = AttentionCache(layer.config.kv_heads, layer.config.head_dim, kv)
        self._position = 0
        self.spans: list[VisionSpan] = []
        """Pictures among the tokens: a pair stands where its hidden state's token stands."""
        self.soft_tokens: dict[VisionSpan, FloatArray] = {}
        """Embeddings that stand for the placeholders of a picture here too; empty to leave the placeholders' own."""
        self.cancel: CancelToken | None = None
        """Checked by every pass, so that a Stop need not wait for a slow disk."""

    @property
    def position(self) -> int:
        return self._position

    @property
    def draft_ids(self) -> npt.NDArray[np.int64] | None:
        return self._layer.draft_ids

    @property
    def draft_step_bytes(self) -> int:
        return self._layer.step_bytes

    def forward(self, hidden: FloatArray, tokens: Sequence[int]) -> FloatArray:
        """See `MtpModel.forward`. If it raises, the cache is as before."""
        # Drafts may run past the last position that the trunk can fill.
        self._cache.reserve(self._position + len(tokens), self._context + 16)
        out = self._layer.forward(
            self._cache, self._position, hidden, tokens, self.spans, list(self._overrides(len(tokens))), self.cancel
        )
        self._position += len(tokens)
        return out

    def _overrides(self, rows: int) -> Iterator[tuple[int, FloatArray]]:
        """(row, embeddings) of pictures among the tokens that follow positions `position`…"""
        start = self._position + 1
        for span, soft in self.soft_tokens.items():
            first, last = max(span.start, start), min(span.end, start + rows)
            if first < last:
                yield first - start, soft[first - span.start : last - span.start]

    def logits(self, output: FloatArray) -> FloatArray:
        logits = self._layer.logits(output, self.cancel)
        return logits if self._layer.draft_ids is not None else logits[:, : self._vocabulary]

    def truncate(self, length: int) -> None:
        self._position = min(self._position, length)

    @property
    def nbytes(self) -> int:
        return self._cache.nbytes

    def clone(self) -> MtpSession:
        """An independent session with the same past."""
        other = MtpSession(self._layer, self._vocabulary, self._context, self._cache.kind)
        other._cache, other._position = self._cache.clone(self._position), self._position
        other.spans, other.soft_tokens = list(self.spans), dict(self.soft_tokens)
        return other
