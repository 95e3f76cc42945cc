"""SwiGLU: down(silu(gate(x)) · up(x))."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.kernels.activation import silu_multiply
from engine.kernels.context import ComputeContext
from engine.kernels.matmul import linear_again
from engine.kernels.matrix import Matrix
from engine.model.workspace import FloatArray, Workspace

Products = Callable[[ComputeContext, Sequence[Matrix], FloatArray, Sequence[FloatArray]], None]
"""`linear_many` or `linear_again`"""


def swiglu(
    context: ComputeContext,
    workspace: Workspace,
    matrices: Mapping[str, Matrix],
    prefix: str,
    x: FloatArray,
    out: FloatArray,
    products: Products = linear_again,
) -> None:
    """x [T, H] → out [T, H] through `prefix` + gate_proj, up_proj, down_proj. `products`: whether the same arrays will
    come again with these matrices."""
    gate_w, up_w, down_w = (matrices[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
    gate = workspace.array("ff_gate", len(x), gate_w.rows)
    up = workspace.array("ff_up", len(x), up_w.rows)
    products(context, [gate_w, up_w], x, [gate, up])
    silu_multiply(gate, up, gate)
    products(context, [down_w], gate, [out])
