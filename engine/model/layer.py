"""One decoder layer: x += mixer(norm(x)); x += feed_forward(norm(x))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from engine.cancel import CancelToken
from engine.kernels.matrix import Matrix
from engine.kernels.norm import add_rms_norm, rms_norm
from engine.model.attention import Attention
from engine.model.deltanet import DeltaNet
from engine.model.experts import Experts
from engine.model.feed_forward import swiglu
from engine.model.forward_pass import FloatArray, ForwardPass
from engine.model.state import AttentionCache, RecurrentCache

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.weights.protocols import WeightSource


class DecoderLayer:
    """A layer of the trunk, or the MTP layer's."""

    def __init__(
        self,
        config: ModelConfig,
        weights: WeightSource,
        *,
        unit: str,
        prefix: str,
        kind: str,
        v_heads_tiled: bool = False,
    ) -> None:
        self._weights = weights
        self._eps = np.float32(config.rms_eps)
        self.unit = unit
        self.mixer: Attention | DeltaNet = (
            Attention(config, weights, prefix) if kind == "full" else DeltaNet(config, weights, prefix, v_heads_tiled)
        )
        self._experts = Experts(config, weights, unit, prefix) if config.experts else None
        self._input_norm = weights.vector(f"{prefix}input_layernorm.weight")  # [H]
        self._post_norm = weights.vector(f"{prefix}post_attention_layernorm.weight")  # [H]

    def __call__(
        self, run: ForwardPass, residual: FloatArray, cache: AttentionCache | RecurrentCache, cancel: CancelToken | None
    ) -> None:
        """Adds the layer's outputs to the residual stream [T, H] in place."""
        matrices = self._weights.acquire(self.unit, cancel)
        try:
            self.apply(run, matrices, residual, cache, cancel)
        finally:
            self._weights.release(self.unit)

    def apply(
        self,
        run: ForwardPass,
        matrices: Mapping[str, Matrix],
        residual: FloatArray,
        cache: AttentionCache | RecurrentCache,
        cancel: CancelToken | None,
    ) -> None:
        """The same with the unit's matrices at hand."""
        normed = run.array("normed", residual.shape[1])
        rms_norm(residual, self._input_norm, self._eps, normed)
        mixed = self._mix(run, matrices, normed, cache)
        add_rms_norm(residual, mixed, self._post_norm, self._eps, normed)
        out = run.array("ff_out", residual.shape[1])
        if self._experts is None:
            swiglu(run.context, run.workspace, matrices, "mlp.", normed, out)
        else:
            self._experts(run, matrices, normed, out, cancel)
        residual += out

    def _mix(
        self,
        run: ForwardPass,
        matrices: Mapping[str, Matrix],
        normed: FloatArray,
        cache: AttentionCache | RecurrentCache,
    ) -> FloatArray:
        if isinstance(self.mixer, Attention):
            assert isinstance(cache, AttentionCache)
            return self.mixer(run, matrices, normed, cache)
        assert isinstance(cache, RecurrentCache)
        return self.mixer(run, matrices, normed, cache)
