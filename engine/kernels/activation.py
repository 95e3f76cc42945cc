"""Elementwise functions between matrix products. All arrays are float32 and C-contiguous."""

from __future__ import annotations

from engine.kernels import elementary
from engine.kernels.compiled import kernel
from engine.kernels.lanes import LANES, fma, load, load_first, splat, store, store_first


@kernel("void(float32[:, ::1], float32[:, ::1], float32[:, ::1])")
def silu_multiply(gate, up, out):  # type: ignore[no-untyped-def]
    """out = silu(gate) · up, all [T, I]; `out` may be either of the others."""
    if up.shape != gate.shape or out.shape != gate.shape:
        raise ValueError("silu_multiply: gate, up and out have one shape")
    g, u, o = gate.ctypes.data, up.ctypes.data, out.ctypes.data
    rest = gate.size % LANES
    for i in range(0, 4 * (gate.size - rest), 4 * LANES):
        store(o + i, elementary.silu(load(g + i)) * load(u + i))
    if rest:
        i = 4 * (gate.size - rest)
        store_first(o + i, elementary.silu(load_first(g + i, rest)) * load_first(u + i, rest), rest)


@kernel("void(float32[:, ::1])")
def sigmoid(x):  # type: ignore[no-untyped-def]
    """x = 1 / (1 + exp −x), in place."""
    address = x.ctypes.data
    rest = x.size % LANES
    for i in range(0, 4 * (x.size - rest), 4 * LANES):
        store(address + i, elementary.sigmoid(load(address + i)))
    if rest:
        i = 4 * (x.size - rest)
        store_first(address + i, elementary.sigmoid(load_first(address + i, rest)), rest)


@kernel("void(float32[:, ::1], int64[::1], float32[:, ::1], float32[::1])")
def add_scaled_rows(out, rows, y, shares):  # type: ignore[no-untyped-def]
    """out[rows[i]] += shares[i] · y[i] for every i, in order; out [T, H], y [n, H]."""
    n, H = y.shape
    if rows.size != n or shares.size != n or out.shape[1] != H:
        raise ValueError("add_scaled_rows: out is [T, H], y [n, H], rows and shares [n]")
    for i in range(n):
        if rows[i] < 0 or rows[i] >= out.shape[0]:
            raise IndexError("add_scaled_rows: a row number is outside of out")
        share = splat(shares[i])
        source, target = y.ctypes.data + 4 * H * i, out.ctypes.data + 4 * H * rows[i]
        rest = H % LANES
        for j in range(0, 4 * (H - rest), 4 * LANES):
            store(target + j, fma(load(source + j), share, load(target + j)))
        if rest:
            j = 4 * (H - rest)
            total = fma(load_first(source + j, rest), share, load_first(target + j, rest))
            store_first(target + j, total, rest)
