"""The trunk: embedding, decoder layers, final norm, head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.cancel import CancelToken
from engine.kernels.context import ComputeContext
from engine.kernels.matmul import linear
from engine.kernels.norm import rms_norm
from engine.model.deltanet import DeltaNet
from engine.model.forward_pass import FloatArray, forward_pass
from engine.model.layer import DecoderLayer
from engine.model.state import RecurrentCache, TrunkState
from engine.model.workspace import Workspace

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.weights.protocols import WeightSource


class Trunk:
    """Computes hidden states and logits; keeps nothing of a conversation (that is `TrunkState`)."""

    def __init__(
        self, config: ModelConfig, weights: WeightSource, context: ComputeContext, *, v_heads_tiled: bool = False
    ) -> None:
        self.config = config
        self._weights = weights
        self._context = context
        self._workspace = Workspace()
        self.layers_done = 0
        """Layers of the pass under way that are complete; other threads may look."""
        self._final_norm = weights.vector("norm.weight")  # [H]
        self._layers = [
            DecoderLayer(
                config, weights, unit=f"layers.{i}", prefix=f"layers.{i}.", kind=kind, v_heads_tiled=v_heads_tiled
            )
            for i, kind in enumerate(config.layers)
        ]

    def forward(
        self,
        state: TrunkState,
        tokens: Sequence[int],
        cancel: CancelToken | None = None,
        overrides: Sequence[tuple[int, FloatArray]] = (),
    ) -> FloatArray:
        """Read `tokens` at the state's position. Returns new final-normed hidden states [T, H].

        `overrides` are (row, embeddings [n, H]) that stand in place of the tokens' own from that row on (pictures). A
        row's bits do not depend on how many rows are read at once. If it raises, the state is as before.
        """
        rows = len(tokens)
        state.begin(rows)
        residual = self._workspace.array("residual", rows, self.config.hidden_size)
        try:
            self._weights.embedding(np.asarray(tokens, np.int64), residual, cancel=cancel)
            for row, embeddings in overrides:
                residual[row : row + len(embeddings)] = embeddings
            run = forward_pass(self.config, self._context, self._workspace, state.spans, state.position, rows)
            for layer, cache in zip(self._layers, state.layers, strict=True):
                if cancel is not None:
                    cancel.check()
                layer(run, residual, cache, cancel)
                self.layers_done = (self.layers_done + 1) % len(self._layers)
        except BaseException:
            self.layers_done = 0
            state.abandon()
            raise
        state.commit(rows)
        hidden = np.empty_like(residual)
        rms_norm(residual, self._final_norm, np.float32(self.config.rms_eps), hidden)
        return hidden

    def rollback(self, state: TrunkState, position: int) -> None:
        """Take back the tokens from `position` on, all of the last pass, bit for bit.

        Raises:
            ValueError: `position` lies outside the last pass, or that pass was too long to be recorded.
        """
        kept = state.recorded - (state.position - position)
        if position == state.position:
            return
        if not 0 <= kept < state.recorded:
            raise ValueError(
                f"Cannot go back to position {position}: the last pass covers {state.position - state.recorded} to"
                f" {state.position}."
            )
        for layer, cache in zip(self._layers, state.layers, strict=True):
            if isinstance(cache, RecurrentCache) and isinstance(layer.mixer, DeltaNet):
                if kept == 0:
                    cache.undo()
                else:
                    layer.mixer.rewind(self._context, self._workspace, cache, kept)
        state.forget_from(position)
        state.recorded = kept

    def logits(self, hidden: FloatArray, cancel: CancelToken | None = None) -> FloatArray:
        """New logits [T, rows of the head] of hidden states [T, H]."""
        return head_logits(self._weights, "head", self._context, hidden, cancel)


def head_logits(
    weights: WeightSource, unit: str, context: ComputeContext, hidden: FloatArray, cancel: CancelToken | None = None
) -> FloatArray:
    """New logits [T, n] of hidden states [T, H] with the head in `unit`."""
    x, parts = np.ascontiguousarray(hidden), []
    for piece in weights.pieces(unit):
        matrix = weights.acquire(piece, cancel)["weight"]
        try:
            part = np.empty((len(x), matrix.rows), np.float32)
            linear(context, matrix, x, part)
        finally:
            weights.release(piece)
        parts.append(part)
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
