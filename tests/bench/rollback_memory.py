"""What it takes to take back refused drafts at the shapes of a 27B model: recorded ingredients against snapshots.

    .venv/bin/python -m tests.bench.rollback_memory

Ingredients are what the recurrent layers were fed in a pass (raw inputs of the convolution, decay, beta): replaying the
accepted rows gives the same bits. Snapshots are the state after each row. Both are compared in memory; the times of a
replay and of copying one state are measured for one layer and multiplied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.kernels.context import ComputeContext
from engine.kernels.cpu import configure_environment
from engine.model.state import RECORDED_ROWS


@dataclass(frozen=True)
class Shape:
    """The recurrent layers of a model."""

    layers: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    taps: int = 3

    @property
    def channels(self) -> int:
        return 2 * self.k_heads * self.k_dim + self.v_heads * self.v_dim

    @property
    def state_bytes(self) -> int:
        """One layer's state, float32."""
        return 4 * self.v_heads * self.k_dim * self.v_dim


LARGE = Shape(layers=48, k_heads=16, v_heads=48, k_dim=128, v_dim=128)


def memory(shape: Shape, rows: int) -> tuple[int, int]:
    """(bytes of ingredients with the one old state that a replay starts from, bytes of a snapshot after each row)."""
    ingredients = 4 * ((shape.taps + rows) * shape.channels + 2 * rows * shape.v_heads)
    snapshots = rows * (shape.state_bytes + 4 * shape.taps * shape.channels)
    return shape.layers * (ingredients + shape.state_bytes), shape.layers * snapshots


def best_ms(action: Callable[[], object], repeats: int = 15) -> float:
    """The least of several times: what the work itself takes, whatever else the machine does."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


def main() -> None:
    configure_environment()
    print(f"27B shapes: {LARGE.layers} recurrent layers, state {LARGE.state_bytes / 1e6:.2f} MB each")
    for rows in (2, 4, 8, RECORDED_ROWS):
        ingredients, snapshots = memory(LARGE, rows)
        print(f"{rows:>2} rows: ingredients {ingredients / 1e6:8.1f} MB   snapshots {snapshots / 1e6:8.1f} MB")
    rng = np.random.default_rng(0)
    state = rng.normal(size=(LARGE.v_heads, LARGE.k_dim, LARGE.v_dim)).astype(np.float32)
    other = np.empty_like(state)
    copy = LARGE.layers * best_ms(lambda: np.copyto(other, state))
    print(f"copying all states once: {copy:.1f} ms; a snapshot after each row costs that for every row of every pass")
    for threads in (1, 2):
        context = ComputeContext(threads)
        for rows in (1, 3, 7):
            print(f"replaying {rows} accepted rows, {threads} threads: {_replay_ms(context, state, rows):.1f} ms")


def _replay_ms(context: ComputeContext, state: np.ndarray, rows: int) -> float:
    """Milliseconds to bring all layers from the old state over `rows` rows, convolution included."""
    from engine.kernels.convolution import causal_conv_silu
    from engine.kernels.deltanet import delta_replay
    from engine.model.deltanet import k_head_of_v_head

    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(LARGE.taps + rows, LARGE.channels)).astype(np.float32)
    kernel = rng.normal(size=(LARGE.channels, LARGE.taps + 1)).astype(np.float32)
    decay = -rng.uniform(0.01, 0.5, (rows, LARGE.v_heads)).astype(np.float32)
    beta = rng.uniform(0.1, 0.9, (rows, LARGE.v_heads)).astype(np.float32)
    qkv, new = np.empty((rows, LARGE.channels), np.float32), np.empty_like(state)
    k_head = k_head_of_v_head(LARGE.k_heads, LARGE.v_heads, tiled=False)

    def replay() -> None:
        causal_conv_silu(inputs, kernel, qkv)
        delta_replay(context, state, new, qkv, decay, beta, k_head, rows)

    return LARGE.layers * best_ms(replay)


if __name__ == "__main__":
    main()
