"""What attention works on: normed and rotated queries and keys, and the rows that a pass adds to the KV cache."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import kernel
from engine.kernels.norm import norm_row
from engine.kernels.rope import rotate

_IN_1D, _IN_2D = "Array(float32, 1, 'C', readonly=True)", "Array(float32, 2, 'C', readonly=True)"


@njit
def _norm_and_rotate(x, scale, size, eps, cos, sin, half, out):  # type: ignore[no-untyped-def]
    norm_row(x, scale, size, eps, out)
    rotate(out, cos, sin, half)


@kernel(
    f"void({_IN_2D}, {_IN_2D}, {_IN_2D}, {_IN_1D}, {_IN_1D}, float32, {_IN_2D}, {_IN_2D}, int64, "
    "float32[:, :, ::1], float32[:, :, ::1], float32[:, :, ::1])"
)
def attention_inputs(qg, k, v, q_scale, k_scale, eps, cos, sin, position, q_out, k_cache, v_cache):  # type: ignore[no-untyped-def]
    """Fill q_out [T, heads, hd] and rows position… of k_cache and v_cache [kv, capacity, hd].

    qg [T, heads · 2 hd] holds [query | gate] per head, k and v [T, kv · hd]; q_scale, k_scale [hd]; cos, sin [T, rot /
    2]. Queries and keys are normed per head and rotated; the gate is left to `attention`.
    """
    T, heads, hd = q_out.shape
    kv, capacity, _ = k_cache.shape
    half = cos.shape[1]
    if qg.shape != (T, heads * 2 * hd) or k.shape != (T, kv * hd) or v.shape != k.shape:
        raise ValueError("attention_inputs: qg is [T, heads 2 hd], k and v are [T, kv hd]")
    if v_cache.shape != k_cache.shape or k_cache.shape[2] != hd or position < 0 or position + T > capacity:
        raise ValueError(
            "attention_inputs: the caches are [kv, capacity, hd] with room for rows position to position + T"
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
            source = k.ctypes.data + 4 * hd * (t * kv + h)
            target = k_cache.ctypes.data + 4 * hd * (h * capacity + position + t)
            _norm_and_rotate(source, k_scale.ctypes.data, hd, eps, c, s, half, target)
            for i in range(hd):
                v_cache[h, position + t, i] = v[t, h * hd + i]
