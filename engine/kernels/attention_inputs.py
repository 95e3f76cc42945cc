"""What attention works on: normed and rotated queries and keys, and the rows that a pass adds to the KV cache."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.kv_rows import encode_row
from engine.kernels.lanes import LANES
from engine.kernels.norm import norm_row
from engine.kernels.rope import rotate

_IN_1D, _IN_2D = "Array(float32, 1, 'C', readonly=True)", "Array(float32, 2, 'C', readonly=True)"


@njit
def _norm_and_rotate(x, scale, size, eps, cos, sin, half, out):  # type: ignore[no-untyped-def]
    norm_row(x, scale, size, eps, out)
    rotate(out, cos, sin, half)


@kernel(
    f"void({_IN_2D}, float32[:, ::1], {_IN_2D}, {_IN_1D}, {_IN_1D}, float32, {_IN_2D}, {_IN_2D}, int64, "
    "float32[:, :, ::1], int64, int64, uint8[:, :, ::1], uint8[:, :, ::1])"
)
def attention_inputs(qg, k, v, q_scale, k_scale, eps, cos, sin, position, q_out, code, row_bytes, keys, values):  # type: ignore[no-untyped-def]
    """Fill q_out [T, heads, hd] and rows position… of keys and values, caches [kv, capacity, row bytes].

    qg [T, heads · 2 hd] holds [query | gate] per head, k and v [T, kv · hd]; q_scale, k_scale [hd]; cos, sin [T, rot /
    2]. Queries and keys are normed per head and rotated, k in place; the gate is left to `attention`. `code` and
    `row_bytes` are those of the cache's `KvType`.
    """
    T, heads, hd = q_out.shape
    kv, capacity, width = keys.shape
    half = cos.shape[1]
    if qg.shape != (T, heads * 2 * hd) or k.shape != (T, kv * hd) or v.shape != k.shape or hd % LANES:
        raise ValueError("attention_inputs: qg is [T, heads 2 hd], k and v are [T, kv hd], hd is a multiple of 16")
    if values.shape != keys.shape or width != row_bytes or position < 0 or position + T > capacity:
        raise ValueError(
            "attention_inputs: the caches are [kv, capacity, row bytes] with room for rows position to position + T"
        )
    if q_scale.size != hd or k_scale.size != hd or cos.shape[0] != T or sin.shape != cos.shape or 2 * half > hd:
        raise ValueError("attention_inputs: scales are [hd], cos and sin [T, rotary dim / 2]")
    for t in range(T):
        c, s = cos.ctypes.data + 4 * half * t, sin.ctypes.data + 4 * half * t
        for h in range(heads):
            source = qg.ctypes.data + 4 * hd * 2 * (t * heads + h)
            target = q_out.ctypes.data + 4 * hd * (t * heads + h)
            _norm_and_rotate(source, q_scale.ctypes.data, hd, eps, c, s, half, target)
        for h in range(kv):
            source, row = 4 * hd * (t * kv + h), width * (h * capacity + position + t)
            key = k.ctypes.data + source
            _norm_and_rotate(key, k_scale.ctypes.data, hd, eps, c, s, half, key)
            encode_row(code, key, hd, keys.ctypes.data + row)
            encode_row(code, v.ctypes.data + source, hd, values.ctypes.data + row)
