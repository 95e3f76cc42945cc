"""The causal depthwise convolution in front of a DeltaNet layer's heads."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.elementary import silu
from engine.kernels.lanes import LANES, load, load_first, load_quarter, store, store_first

_TAPS = 4  # the published size
_ROWS = 16  # that one reading of the weights serves


@njit
def _sixteen_channels(inputs, step, weight, out, rows):  # type: ignore[no-untyped-def]
    """out = silu of the convolution for 16 channels of some rows; `step` is the bytes of a row, weight [16, 4]."""
    w0, w1, w2, w3 = load_quarter(weight, 0), load_quarter(weight, 1), load_quarter(weight, 2), load_quarter(weight, 3)
    x0, x1, x2 = load(inputs), load(inputs + step), load(inputs + 2 * step)
    for t in range(rows):
        x3 = load(inputs + (t + 3) * step)
        store(out + t * step, silu(x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3))
        x0, x1, x2 = x1, x2, x3


@njit
def _other_channels(inputs, weight, first, out):  # type: ignore[no-untyped-def]
    """The same for any number of taps, and for the channels from `first` on."""
    T, C = out.shape
    for t in range(T):
        for c in range(first, C):
            total = inputs[t, c] * weight[c, 0]
            for j in range(1, weight.shape[1]):
                total += inputs[t + j, c] * weight[c, j]
            out[t, c] = total
        for c in range(first, C, LANES):
            count, address = min(LANES, C - c), out.ctypes.data + 4 * (C * t + c)
            store_first(address, silu(load_first(address, count)), count)


@kernel("void(float32[:, ::1], Array(float32, 2, 'C', readonly=True), float32[:, ::1])")
def causal_conv_silu(inputs, weight, out):  # type: ignore[no-untyped-def]
    """out [T, C] = silu(Σ_j inputs[t + j] · weight[:, j]).

    inputs [(K − 1) + T, C]: the K − 1 rows before this pass, then its own; weight [C, K], whose tap K − 1 meets the row
    itself. Products are added up from the oldest row to the newest.
    """
    T, C = out.shape
    K = weight.shape[1]
    if K < 1 or inputs.shape[0] != T + K - 1 or inputs.shape[1] != C or weight.shape[0] != C:
        raise ValueError("causal_conv_silu: inputs is [K - 1 + T, C], weight [C, K] and out [T, C]")
    whole = C - C % LANES if K == _TAPS else 0
    for t in range(0, T, _ROWS):
        for c in range(0, whole, LANES):
            at = 4 * (t * C + c)
            weights = weight.ctypes.data + 4 * _TAPS * c
            _sixteen_channels(inputs.ctypes.data + at, 4 * C, weights, out.ctypes.data + at, min(_ROWS, T - t))
    if whole < C:
        _other_channels(inputs, weight, whole, out)
