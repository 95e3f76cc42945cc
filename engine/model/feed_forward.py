"""SwiGLU: down(silu(gate(x)) · up(x))."""

from __future__ import annotations

from collections.abc import Mapping

from engine.kernels.activation import silu_multiply
from engine.kernels.context import ComputeContext
from engine.kernels.matmul import linear, linear_many
from engine.kernels.matrix import Matrix
from engine.model.workspace import FloatArray, Workspace


def swiglu(
    context: ComputeContext,
    workspace: Workspace,
    matrices: Mapping[str, Matrix],
    prefix: str,
    x: FloatArray,
    out: FloatArray,
) -> None:
    """x [T, H] → out [T, H] through `prefix` + gate_proj, up_proj, down_proj."""
    gate_w, up_w, down_w = (matrices[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
    gate = workspace.array("ff_gate", len(x), gate_w.rows)
    up = workspace.array("ff_up", len(x), up_w.rows)
    linear_many(context, [gate_w, up_w], x, [gate, up])
    silu_multiply(gate, up, gate)
    linear(context, down_w, gate, out)
