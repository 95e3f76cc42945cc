"""Mixture of experts: a router picks a few experts per token; one shared expert sees every token.

y = Σ_e w_e · expert_e(x) + sigmoid(g·x) · shared(x), with w = softmax over all experts, top k, renormalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from engine.cancel import CancelToken
from engine.kernels.activation import add_scaled_rows, sigmoid
from engine.kernels.matmul import linear, linear_many
from engine.kernels.matrix import Matrix
from engine.kernels.router import route
from engine.model.feed_forward import swiglu
from engine.model.forward_pass import FloatArray, ForwardPass

if TYPE_CHECKING:
    from engine.files.config import ModelConfig
    from engine.weights.protocols import WeightSource


class Experts:
    """The feed-forward part of a mixture-of-experts layer."""

    def __init__(self, config: ModelConfig, weights: WeightSource, unit: str, prefix: str) -> None:
        self._config = config
        self._weights = weights
        self._unit = unit
        self._shared_gate = weights.vector(f"{prefix}mlp.shared_expert_gate.weight").reshape(1, -1)  # [1, H]

    def __call__(
        self,
        run: ForwardPass,
        matrices: Mapping[str, Matrix],
        x: FloatArray,
        out: FloatArray,
        cancel: CancelToken | None,
    ) -> None:
        """x [T, H], normed → out [T, H]."""
        self._shared(run, matrices, x, out)
        ids, shares = self._route(run, matrices, x)
        routed = np.unique(ids).tolist()
        experts = self._weights.experts(self._unit, routed, cancel)
        # Ascending expert ids: each row adds up its experts in an order that does not depend on the other rows.
        for expert in routed:
            rows, ranks = np.nonzero(ids == expert)
            y = run.workspace.array("expert_out", len(rows), x.shape[1])
            swiglu(run.context, run.workspace, experts[expert], "", np.ascontiguousarray(x[rows]), y, linear_many)
            add_scaled_rows(out, rows.astype(np.int64), y, np.ascontiguousarray(shares[rows, ranks]))

    def _shared(self, run: ForwardPass, matrices: Mapping[str, Matrix], x: FloatArray, out: FloatArray) -> None:
        y = run.array("shared_out", x.shape[1])
        swiglu(run.context, run.workspace, matrices, "mlp.shared_expert.", x, y)
        gate = run.array("shared_gate", 1)
        gate_matrix = Matrix("F32", 1, x.shape[1], self._shared_gate.reshape(-1).view(np.uint8))
        linear(run.context, gate_matrix, x, gate)
        sigmoid(gate)
        out[:] = 0
        add_scaled_rows(out, np.arange(run.rows, dtype=np.int64), y, gate.reshape(-1))

    def _route(
        self, run: ForwardPass, matrices: Mapping[str, Matrix], x: FloatArray
    ) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], FloatArray]:
        """Expert ids and their shares [T, k]."""
        c = self._config
        logits = run.array("router", c.experts)
        linear(run.context, matrices["mlp.gate.weight"], x, logits)
        ids = np.empty((run.rows, c.experts_per_token), np.int64)
        shares = np.empty((run.rows, c.experts_per_token), np.float32)
        route(logits, c.experts_per_token, ids, shares)
        return ids, shares
