"""The causal depthwise convolution in front of a DeltaNet layer's heads."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.elementary import silu
from engine.kernels.lanes import LANES, load, load_first, store, store_first


@njit
def _silu_row(address, count):  # type: ignore[no-untyped-def]
    rest = count % LANES
    for i in range(0, 4 * (count - rest), 4 * LANES):
        store(address + i, silu(load(address + i)))
    if rest:
        i = 4 * (count - rest)
        store_first(address + i, silu(load_first(address + i, rest)), rest)


@kernel("void(float32[:, ::1], Array(float32, 2, 'C', readonly=True), float32[:, ::1])")
def causal_conv_silu(inputs, weight, out):  # type: ignore[no-untyped-def]
    """out [T, C] = silu(Σ_j inputs[t + j] · weight[:, j]).

    inputs [(K − 1) + T, C]: the K − 1 rows before this pass, then its own; weight [C, K], whose tap K − 1 meets the row
    itself. Products are added up from the oldest row to the newest.
    """
    T, C = out.shape
    K = weight.shape[1]
    if inputs.shape[0] != T + K - 1 or inputs.shape[1] != C or weight.shape[0] != C:
        raise ValueError("causal_conv_silu: inputs is [K - 1 + T, C], weight [C, K] and out [T, C]")
    for t in range(T):
        if K == 4:  # the published size, which the compiler vectorises over the channels
            for c in range(C):
                total = inputs[t, c] * weight[c, 0]
                total += inputs[t + 1, c] * weight[c, 1]
                total += inputs[t + 2, c] * weight[c, 2]
                out[t, c] = total + inputs[t + 3, c] * weight[c, 3]
        else:
            for c in range(C):
                total = inputs[t, c] * weight[c, 0]
                for j in range(1, K):
                    total += inputs[t + j, c] * weight[c, j]
                out[t, c] = total
        _silu_row(out.ctypes.data + 4 * C * t, C)
