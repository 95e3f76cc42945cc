"""Gated DeltaNet: a causal convolution, then a recurrent state per head that is corrected towards each token's value.

S = exp(g) S;  d = beta (v − Sᵀk);  S += k dᵀ;  o = Sᵀq   (Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kernels.convolution import causal_conv_silu
from engine.kernels.deltanet import delta_gates, delta_replay, delta_rule, gated_norm
from engine.kernels.matmul import linear_again
from engine.kernels.matrix import Matrix
from engine.model.forward_pass import FloatArray, ForwardPass
from engine.model.state import RECORDED_ROWS, RecurrentCache

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.kernels.context import ComputeContext
    from engine.model.workspace import Workspace
    from engine.weights.protocols import WeightSource


class DeltaNet:
    """The token mixer of a linear-attention layer."""

    def __init__(self, config: ModelConfig, weights: WeightSource, prefix: str, v_heads_tiled: bool) -> None:
        self._config = config
        p = f"{prefix}linear_attn."
        self._conv = weights.vector(f"{p}conv1d.weight")  # [channels, conv_kernel]
        self._decay_rate = weights.vector(f"{p}decay_rate")  # [v_heads], positive
        self._dt_bias = weights.vector(f"{p}dt_bias")  # [v_heads]
        self._norm = weights.vector(f"{p}norm.weight")  # [v_dim]
        self._k_head = k_head_of_v_head(config.linear_k_heads, config.linear_v_heads, v_heads_tiled)

    def __call__(
        self, run: ForwardPass, matrices: Mapping[str, Matrix], x: FloatArray, cache: RecurrentCache
    ) -> FloatArray:
        """x [T, H], normed → what the layer adds to the residual [T, H]. Leaves the new state in cache.next_state."""
        c = self._config
        heads, value_width = c.linear_v_heads, c.linear_v_heads * c.linear_v_dim
        inputs, projected = cache.inputs(run.rows, run.workspace)  # [taps + T, channels] and [T, channels]
        z, a, b = run.array("z", value_width), run.array("a", heads), run.array("b", heads)
        projections = [matrices[f"linear_attn.in_proj_{name}.weight"] for name in ("qkv", "z", "a", "b")]
        linear_again(run.context, projections, x, [projected, z, a, b])
        cache.keep_tail(run.rows, inputs)
        qkv = run.array("qkv", inputs.shape[1])
        causal_conv_silu(inputs, self._conv, qkv)
        g, beta = self._gates(run, a, b, cache)
        o = run.array("mixed", value_width)
        delta_rule(run.context, cache.state, cache.next_state, qkv, g, beta, self._k_head, o)
        gated = run.array("gated", value_width)
        gated_norm(o, z, self._norm, np.float32(c.rms_eps), gated)
        out = run.array("mixer_out", c.hidden_size)
        linear_again(run.context, [matrices["linear_attn.out_proj.weight"]], gated, [out])
        return out

    def _gates(
        self, run: ForwardPass, a: FloatArray, b: FloatArray, cache: RecurrentCache
    ) -> tuple[FloatArray, FloatArray]:
        """Log decay g and correction strength beta [T, v_heads], kept in the cache if the pass is recorded."""
        if run.rows <= RECORDED_ROWS:
            g, beta = cache.decay[: run.rows], cache.beta[: run.rows]
        else:
            g, beta = run.array("g", a.shape[1]), run.array("beta", a.shape[1])
        delta_gates(a, b, self._decay_rate, self._dt_bias, g, beta)
        return g, beta

    def rewind(self, context: ComputeContext, workspace: Workspace, cache: RecurrentCache, rows: int) -> None:
        """Leave the state as it was after the first `rows` ≥ 1 rows of the last, recorded pass."""
        qkv = workspace.array("qkv", rows, cache.conv_inputs.shape[1])
        causal_conv_silu(cache.conv_inputs[: cache.taps + rows], self._conv, qkv)
        delta_replay(
            context, cache.next_state, cache.state, qkv, cache.decay[:rows], cache.beta[:rows], self._k_head, rows
        )  # after a commit, next_state is the state before the pass
        cache.tail = rows


def k_head_of_v_head(k_heads: int, v_heads: int, tiled: bool) -> npt.NDArray[np.int64]:
    """Which key head each value head uses [v_heads]: neighbours share one as published, GGUF files go round."""
    v = np.arange(v_heads, dtype=np.int64)
    return v % k_heads if tiled else v // (v_heads // k_heads)
