"""Gated DeltaNet: a state per head that decays and is corrected towards each token's value.

For every token, with q and k of unit length and q divided by sqrt(dk):
    S = exp(g) S;  d = beta (v − Sᵀk);  S = S + k dᵀ;  o = Sᵀq
(Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024). The columns of S do not depend on each other, so the work goes
in blocks of 16 columns, each of which passes through all tokens while it is in the first-level cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.kernels.compiled import Task, kernel
from engine.kernels.elementary import exp, sigmoid, silu, softplus
from engine.kernels.lanes import (
    LANES,
    fma,
    lane,
    load,
    load_first,
    load_float,
    load_integer,
    splat,
    splat_from,
    store,
    store_first,
    store_float,
)
from engine.kernels.norm import inverse_rms, sum_of_squares
from engine.kernels.team import argument, run, take_number

if TYPE_CHECKING:
    from engine.kernels.context import ComputeContext

Floats = npt.NDArray[np.float32]

_NORM_EPS = np.float32(1e-6)
_TOKENS = 16  # tokens whose normed q and k are kept at a time
_SMALL_WORK = 1 << 18  # numbers of state to update below which the other threads are not woken

# Fields of a task's arguments, int64 each
(
    _COUNTER, _IN, _OUT, _QKV, _QKV_STRIDE, _G, _BETA, _K_HEAD, _O, _ROWS, _HEADS, _DK, _DV, _K_WIDTH, _SCRATCH,
    _SCRATCH_STRIDE, _FIELDS,
) = range(17)  # fmt: skip


@njit
def _scaled(source, count, factor, target):  # type: ignore[no-untyped-def]
    """target = source · factor"""
    rest = count % LANES
    for i in range(0, 4 * (count - rest), 4 * LANES):
        store(target + i, load(source + i) * splat(factor))
    if rest:
        i = 4 * (count - rest)
        store_first(target + i, load_first(source + i, rest) * splat(factor), rest)


@njit
def _unit_length(address, count):  # type: ignore[no-untyped-def]
    """1 / sqrt(Σ x² + eps)"""
    return np.float32(1.0) / np.sqrt(sum_of_squares(address, count) + _NORM_EPS)


@njit
def _update_columns(old, step, new, new_step, dk, q, k, v, decay, beta, o):  # type: ignore[no-untyped-def]
    """One token, 16 columns of the state of a head: reads `old`, writes `new`; writes o unless it is 0.

    `step` and `new_step` are the bytes from one row of the state to the next. Rows are added up in four interleaved
    sums, because each addition has to wait for the one before it.
    """
    s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for i in range(0, dk, 4):
        row, k_row = old + i * step, k + 4 * i
        s0 = fma(load(row), splat_from(k_row), s0)
        s1 = fma(load(row + step), splat_from(k_row + 4), s1)
        s2 = fma(load(row + 2 * step), splat_from(k_row + 8), s2)
        s3 = fma(load(row + 3 * step), splat_from(k_row + 12), s3)
    decays = splat(decay)
    predicted = ((s0 + s1) + (s2 + s3)) * decays
    d = (load(v) - predicted) * splat(beta)
    s0, s1, s2, s3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for i in range(0, dk, 4):
        row, target, k_row, q_row = old + i * step, new + i * new_step, k + 4 * i, q + 4 * i
        x0 = fma(splat_from(k_row), d, load(row) * decays)
        x1 = fma(splat_from(k_row + 4), d, load(row + step) * decays)
        x2 = fma(splat_from(k_row + 8), d, load(row + 2 * step) * decays)
        x3 = fma(splat_from(k_row + 12), d, load(row + 3 * step) * decays)
        store(target, x0)
        store(target + new_step, x1)
        store(target + 2 * new_step, x2)
        store(target + 3 * new_step, x3)
        if o:
            s0 = fma(x0, splat_from(q_row), s0)
            s1 = fma(x1, splat_from(q_row + 4), s1)
            s2 = fma(x2, splat_from(q_row + 8), s2)
            s3 = fma(x3, splat_from(q_row + 12), s3)
    if o:
        store(o, (s0 + s1) + (s2 + s3))


@njit
def _prepare_tokens(arguments, head, first, count, memory):  # type: ignore[no-untyped-def]
    """For `count` tokens from `first`: memory = [token][q normed and scaled, k normed], then their decays exp(g)."""
    dk, heads = argument(arguments, _DK), argument(arguments, _HEADS)
    k_head = load_integer(argument(arguments, _K_HEAD) + 8 * head)
    scale = np.float32(1.0) / np.sqrt(np.float32(dk))
    for t in range(count):
        q = argument(arguments, _QKV) + (first + t) * argument(arguments, _QKV_STRIDE) + 4 * k_head * dk
        k = q + 4 * argument(arguments, _K_WIDTH)
        target = memory + 8 * dk * t
        _scaled(q, dk, _unit_length(q, dk) * scale, target)
        _scaled(k, dk, _unit_length(k, dk), target + 4 * dk)
        decay = exp(splat_from(argument(arguments, _G) + 4 * ((first + t) * heads + head)))
        store_float(memory + 8 * dk * _TOKENS + 4 * t, lane(decay, 0))


@njit
def _run_head(arguments, head, memory):  # type: ignore[no-untyped-def]
    """All tokens through the state of one v head."""
    rows, heads = argument(arguments, _ROWS), argument(arguments, _HEADS)
    dk, dv = argument(arguments, _DK), argument(arguments, _DV)
    state_bytes = 4 * dk * dv
    old = argument(arguments, _IN) + head * state_bytes
    new = argument(arguments, _OUT) + head * state_bytes
    beta, o = argument(arguments, _BETA) + 4 * head, argument(arguments, _O)
    qkv, stride = argument(arguments, _QKV), argument(arguments, _QKV_STRIDE)
    values = qkv + 8 * argument(arguments, _K_WIDTH) + 4 * head * dv
    compact = memory + 4 * _TOKENS * (2 * dk + 1)
    for first in range(0, rows, _TOKENS):
        count = min(_TOKENS, rows - first)
        _prepare_tokens(arguments, head, first, count, memory)
        for column in range(0, 4 * dv, 4 * LANES):
            source, step = old + column, 4 * dv
            for t in range(count):
                # Between tokens the columns stand side by side: rows a power of two apart would share few cache sets.
                last = t == count - 1
                result, result_step = (new + column, 4 * dv) if last else (compact, 4 * LANES)
                q = memory + 8 * dk * t
                decay = load_float(memory + 8 * dk * _TOKENS + 4 * t)
                row = first + t
                target = o + 4 * dv * (row * heads + head) + column if o else 0
                _update_columns(
                    source, step, result, result_step, dk, q, q + 4 * dk, values + row * stride + column, decay,
                    load_float(beta + 4 * heads * row), target,
                )  # fmt: skip
                source, step = result, result_step
        old = new


@Task
def _run_heads(arguments, index, _count):  # type: ignore[no-untyped-def]
    memory = argument(arguments, _SCRATCH) + index * argument(arguments, _SCRATCH_STRIDE)
    heads = argument(arguments, _HEADS)
    head = take_number(arguments)
    while head < heads:
        _run_head(arguments, head, memory)
        head = take_number(arguments)


_IN_2D, _IN_1D = "Array(float32, 2, 'C', readonly=True)", "Array(float32, 1, 'C', readonly=True)"


@kernel(
    f"void(int64[::1], Array(float32, 3, 'C', readonly=True), float32[:, :, ::1], {_IN_2D}, {_IN_2D}, {_IN_2D}, "
    "Array(int64, 1, 'C', readonly=True), float32[:, ::1], int64, uint8[::1], int64)"
)
def _pack(arguments, state_in, state_out, qkv, g, beta, k_head, out, rows, scratch, scratch_stride):  # type: ignore[no-untyped-def]
    """Check the shapes and write the arguments of `_run_heads`; out [0, 0] means no output."""
    heads, dk, dv = state_in.shape
    k_width = (qkv.shape[1] - heads * dv) // 2
    if state_out.shape != state_in.shape or dk % 4 or dv % LANES or 2 * k_width + heads * dv != qkv.shape[1]:
        raise ValueError(
            "delta_rule: states are [nv, dk, dv] with dk in fours, dv in sixteens; qkv is [T, 2 nk dk + nv dv]"
        )
    if (
        rows > qkv.shape[0]
        or g.shape[0] < rows
        or beta.shape[0] < rows
        or g.shape[1] != heads
        or beta.shape[1] != heads
    ):
        raise ValueError("delta_rule: g and beta are [T, nv]")
    if out.size and (out.shape[0] != rows or out.shape[1] != heads * dv):
        raise ValueError("delta_rule: out is [T, nv dv]")
    for head in range(heads):
        if k_head.size != heads or k_head[head] < 0 or (k_head[head] + 1) * dk > k_width:
            raise ValueError("delta_rule: k_head is [nv], each the number of a k head")
    arguments[_COUNTER] = 0
    arguments[_IN], arguments[_OUT] = state_in.ctypes.data, state_out.ctypes.data
    arguments[_QKV], arguments[_QKV_STRIDE] = qkv.ctypes.data, 4 * qkv.shape[1]
    arguments[_G], arguments[_BETA], arguments[_K_HEAD] = g.ctypes.data, beta.ctypes.data, k_head.ctypes.data
    arguments[_O] = out.ctypes.data if out.size else 0
    arguments[_ROWS], arguments[_HEADS], arguments[_DK], arguments[_DV] = rows, heads, dk, dv
    arguments[_K_WIDTH] = k_width
    arguments[_SCRATCH], arguments[_SCRATCH_STRIDE] = scratch.ctypes.data, scratch_stride


_NO_OUTPUT = np.empty((0, 0), np.float32)


def delta_rule(
    context: ComputeContext,
    state_in: Floats,
    state_out: Floats,
    qkv: Floats,
    g: Floats,
    beta: Floats,
    k_head: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """T tokens through the states of all heads; T calls of one token give the same bits.

    state_in, state_out: [nv, dk, dv], S before and after; they may be the same array, not overlap otherwise.
    qkv: [T, 2 nk dk + nv dv], q heads, k heads, v heads, after convolution and silu. g (log decay), beta: [T, nv].
    k_head: [nv], the q and k head of each v head. out: [T, nv dv]. dk is a multiple of 4, dv of 16.
    """
    _dispatch(context, state_in, state_out, qkv, g, beta, k_head, out, qkv.shape[0])


def delta_replay(
    context: ComputeContext,
    state_in: Floats,
    state_out: Floats,
    qkv: Floats,
    g: Floats,
    beta: Floats,
    k_head: npt.NDArray[np.int64],
    count: int,
) -> None:
    """Leave in state_out what `delta_rule` would after the first `count` rows, bit for bit, without the outputs."""
    _dispatch(context, state_in, state_out, qkv, g, beta, k_head, _NO_OUTPUT, count)


def _dispatch(
    context: ComputeContext,
    state_in: Floats,
    state_out: Floats,
    qkv: Floats,
    g: Floats,
    beta: Floats,
    k_head: npt.NDArray[np.int64],
    out: Floats,
    rows: int,
) -> None:
    if rows == 0:
        if state_out is not state_in:
            state_out[:] = state_in
        return
    heads, dk, _ = state_in.shape
    threads = min(context.threads, heads) if rows * state_in.size >= _SMALL_WORK else 1
    stride = 4 * _TOKENS * (2 * dk + 1) + 4 * LANES * dk  # for each thread: q, k, decays of some tokens; 16 columns
    arguments = context.plan(_FIELDS)
    _pack(arguments, state_in, state_out, qkv, g, beta, k_head, out, rows, context.scratch(threads * stride), stride)
    run(_run_heads, arguments, threads)


@kernel(f"void({_IN_2D}, {_IN_2D}, {_IN_1D}, {_IN_1D}, float32[:, ::1], float32[:, ::1])")
def delta_gates(a, b, decay_rate, dt_bias, g_out, beta_out):  # type: ignore[no-untyped-def]
    """g = −decay_rate · softplus(a + dt_bias), beta = sigmoid(b), all [T, nv]; decay_rate (exp A_log), dt_bias [nv]."""
    T, heads = a.shape
    if b.shape != a.shape or g_out.shape != a.shape or beta_out.shape != a.shape:
        raise ValueError("delta_gates: a, b, g and beta are [T, nv]")
    if decay_rate.size != heads or dt_bias.size != heads:
        raise ValueError("delta_gates: decay_rate and dt_bias are [nv]")
    for t in range(T):
        for h in range(0, heads, LANES):
            n, at = min(LANES, heads - h), 4 * (t * heads + h)
            bias, rate = load_first(dt_bias.ctypes.data + 4 * h, n), load_first(decay_rate.ctypes.data + 4 * h, n)
            g = (splat(0.0) - rate) * softplus(load_first(a.ctypes.data + at, n) + bias)
            store_first(g_out.ctypes.data + at, g, n)
            store_first(beta_out.ctypes.data + at, sigmoid(load_first(b.ctypes.data + at, n)), n)


@kernel(f"void({_IN_2D}, {_IN_2D}, {_IN_1D}, float32, float32[:, ::1])")
def gated_norm(o, z, scale, eps, out):  # type: ignore[no-untyped-def]
    """out = scale · o / rms(o) · silu(z), normed per head; o, z, out [T, nv dv], scale [dv]."""
    T, width = o.shape
    dv = scale.size
    if z.shape != o.shape or out.shape != o.shape or dv == 0 or width % dv:
        raise ValueError("gated_norm: o, z and out are [T, nv dv] and scale is [dv]")
    for i in range(0, T * width, dv):
        x, gate, target = o.ctypes.data + 4 * i, z.ctypes.data + 4 * i, out.ctypes.data + 4 * i
        factor = splat(inverse_rms(x, dv, eps))
        rest = dv % LANES
        for j in range(0, 4 * (dv - rest), 4 * LANES):
            store(target + j, load(x + j) * factor * load(scale.ctypes.data + j) * silu(load(gate + j)))
        if rest:
            j = 4 * (dv - rest)
            normed = load_first(x + j, rest) * factor * load_first(scale.ctypes.data + j, rest)
            store_first(target + j, normed * silu(load_first(gate + j, rest)), rest)
