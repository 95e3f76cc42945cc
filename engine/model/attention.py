"""Gated full attention: q/k norms, partial rotary embedding, grouped KV heads, and an output gate per query head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from engine.kernels.attention import attention, attention_inputs
from engine.kernels.matmul import linear_again
from engine.kernels.matrix import Matrix
from engine.model.forward_pass import FloatArray, ForwardPass
from engine.model.state import AttentionCache

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.weights.protocols import WeightSource


class Attention:
    """The token mixer of a full-attention layer (of the trunk, or of the MTP layer)."""

    def __init__(self, config: ModelConfig, weights: WeightSource, prefix: str) -> None:
        self._config = config
        self._q_scale = weights.vector(f"{prefix}self_attn.q_norm.weight")  # [head_dim]
        self._k_scale = weights.vector(f"{prefix}self_attn.k_norm.weight")  # [head_dim]

    def __call__(
        self, run: ForwardPass, matrices: Mapping[str, Matrix], x: FloatArray, cache: AttentionCache
    ) -> FloatArray:
        """x [T, H], normed → what the layer adds to the residual stream [T, H]. Appends T rows to the cache."""
        c = self._config
        width = c.heads * c.head_dim
        q_gate = run.array("q_gate", 2 * width)  # per head [query | gate]
        k = run.array("k", c.kv_heads * c.head_dim)
        v = run.array("v", c.kv_heads * c.head_dim)
        projections = [matrices[f"self_attn.{name}_proj.weight"] for name in "qkv"]
        linear_again(run.context, projections, x, [q_gate, k, v])
        q = run.array("q", width).reshape(run.rows, c.heads, c.head_dim)
        attention_inputs(
            q_gate, k, v, self._q_scale, self._k_scale, np.float32(c.rms_eps), run.cos, run.sin, run.position,
            q, cache.kind.code, cache.kind.row_bytes(c.head_dim), cache.keys, cache.values,
        )  # fmt: skip
        mixed = run.array("mixed", width)
        attention(run.context, q, cache.keys, cache.values, cache.kind, run.position, q_gate, mixed)
        out = run.array("mixer_out", c.hidden_size)
        linear_again(run.context, [matrices["self_attn.o_proj.weight"]], mixed, [out])
        return out
