"""Measurements for `bench`: the parts of a pass whose cost is not that of weights, alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kernels.kv_types import KV_TYPES, KvType

if TYPE_CHECKING:
    from engine.files.config import ModelConfig

POSITIONS = (4096, 32_768)

Floats = npt.NDArray[np.float32]


def measure_parts(config: ModelConfig, threads: int, repeats: int) -> dict[str, float]:
    """Milliseconds for one token in one layer: DeltaNet's recurrence, and attention behind so many positions, with each
    type of KV cache that the model's heads allow."""
    times = {
        f"attention {positions} {kind.name}": _attention(config, kind, threads, positions, repeats)
        for positions in POSITIONS
        for kind in KV_TYPES.values()
        if kind.fits(config.head_dim)
    }
    if "linear" in config.layers:
        times["deltanet"] = _deltanet(config, threads, repeats)
    return times


def _attention(config: ModelConfig, kind: KvType, threads: int, positions: int, repeats: int) -> float:
    from engine.kernels.attention import attention
    from engine.kernels.context import ComputeContext

    heads, hd = config.heads, config.head_dim
    keys, values = (_cache(config, kind, positions) for _ in range(2))
    q, gate, out = _numbers(1, heads, hd), _numbers(1, 2 * heads * hd), np.empty((1, heads * hd), np.float32)
    context = ComputeContext(threads)
    return _median_ms(lambda: attention(context, q, keys, values, kind, positions - 1, gate, out), repeats)


def _cache(config: ModelConfig, kind: KvType, positions: int) -> npt.NDArray[np.uint8]:
    from engine.kernels.kv_rows import encode_rows

    rows = np.empty((config.kv_heads * positions, kind.row_bytes(config.head_dim)), np.uint8)
    encode_rows(kind.code, _numbers(len(rows), config.head_dim), rows)
    return rows.reshape(config.kv_heads, positions, -1)


def _deltanet(config: ModelConfig, threads: int, repeats: int) -> float:
    from engine.kernels.context import ComputeContext
    from engine.kernels.deltanet import delta_rule

    keys, heads, dk, dv = config.linear_k_heads, config.linear_v_heads, config.linear_k_dim, config.linear_v_dim
    states, out = np.zeros((2, heads, dk, dv), np.float32), np.empty((1, heads * dv), np.float32)
    qkv, g, beta = _numbers(1, 2 * keys * dk + heads * dv), -abs(_numbers(1, heads)), abs(_numbers(1, heads)) % 1
    k_head = np.arange(heads, dtype=np.int64) * keys // heads
    context = ComputeContext(threads)
    return _median_ms(lambda: delta_rule(context, states[0], states[1], qkv, g, beta, k_head, out), repeats)


def _numbers(*shape: int) -> Floats:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _median_ms(action: Callable[[], object], repeats: int) -> float:
    action()
    times = []
    for _ in range(max(repeats, 5)):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return round(1000 * statistics.median(times), 3)
