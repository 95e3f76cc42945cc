"""What the trunk remembers of a conversation: KV caches, recurrent states, and the means to take tokens back exactly.

A pass reads each cache and leaves its result beside the old value; `TrunkState.commit` makes all results current at
once, so a pass that was cancelled or failed leaves the state as it was. A pass of up to `RECORDED_ROWS` rows also
records what its recurrent layers were fed, so that `rollback` can replay the accepted rows: the same kernel on the same
numbers in the same order, hence the same bits as if the refused rows had never been there.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.files.config import ModelConfig
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.model.positions import VisionSpan
from engine.model.workspace import Workspace

ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float32]

RECORDED_ROWS = 15
"""Rows of a pass that can be rolled back: what decode kernels handle exactly, next token and drafts together."""

_FIRST_CAPACITY = 256


class AttentionCache:
    """Keys (rotated) and values of a full-attention layer, uint8 [kv_heads, capacity, row bytes]; row i is position i's
    and stored as `kind` says."""

    def __init__(self, kv_heads: int, head_dim: int, kind: KvType, capacity: int = 0) -> None:
        self.kind = kind
        self.keys: ByteArray = np.zeros((kv_heads, capacity, kind.row_bytes(head_dim)), np.uint8)
        self.values: ByteArray = np.zeros_like(self.keys)

    def reserve(self, length: int, limit: int) -> None:
        """Make room for `length` rows, growing by half at least, up to `limit` rows."""
        capacity = self.keys.shape[1]
        if length <= capacity:
            return
        capacity = min(limit, max(length, _FIRST_CAPACITY, capacity + capacity // 2))
        self.keys = _resized(self.keys, capacity)
        self.values = _resized(self.values, capacity)

    def clone(self, length: int) -> AttentionCache:
        """A copy of the first `length` rows."""
        other = copy(self)
        other.keys, other.values = _resized(self.keys[:, :length], length), _resized(self.values[:, :length], length)
        return other

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes


def _resized(old: ByteArray, capacity: int) -> ByteArray:
    new = np.zeros((old.shape[0], capacity, old.shape[2]), np.uint8)
    new[:, : old.shape[1]] = old
    return new


class RecurrentCache:
    """State of one Gated DeltaNet layer, twice: before and after the last pass; and what that pass was fed."""

    def __init__(self, config: ModelConfig) -> None:
        heads, k_dim, v_dim = config.linear_v_heads, config.linear_k_dim, config.linear_v_dim
        channels = 2 * config.linear_k_heads * k_dim + heads * v_dim
        self.taps = config.conv_kernel - 1
        self.states: FloatArray = np.zeros((2, heads, k_dim, v_dim), np.float32)
        self.current = 0
        self.conv_inputs: FloatArray = np.zeros((self.taps + RECORDED_ROWS, channels), np.float32)
        self.tail = 0
        """The rows of conv_inputs that the next token's convolution reaches back to start here."""
        self.decay: FloatArray = np.zeros((RECORDED_ROWS, heads), np.float32)
        self.beta: FloatArray = np.zeros((RECORDED_ROWS, heads), np.float32)
        self._long_tail: FloatArray | None = None
        # One object for each number of rows, so that products recognise it.
        self._recorded = [self.conv_inputs[: self.taps + rows] for rows in range(RECORDED_ROWS + 1)]
        self._projected = [inputs[self.taps :] for inputs in self._recorded]

    @property
    def state(self) -> FloatArray:
        """[v_heads, k_dim, v_dim]"""
        state: FloatArray = self.states[self.current]
        return state

    @property
    def next_state(self) -> FloatArray:
        """Where a pass leaves its result."""
        state: FloatArray = self.states[1 - self.current]
        return state

    @property
    def conv_tail(self) -> FloatArray:
        """The last conv_kernel − 1 raw inputs of the convolution, oldest first [taps, channels]."""
        return self.conv_inputs[self.tail : self.tail + self.taps]

    def inputs(self, rows: int, workspace: Workspace) -> tuple[FloatArray, FloatArray]:
        """Where a pass puts the raw inputs of its convolution: [taps + rows, channels], in front of which the tail
        already stands, and the part [rows, channels] that is to be filled. Own memory if the pass is to be recorded,
        else shared with the other layers."""
        if rows <= RECORDED_ROWS:
            if self.tail:
                self.conv_inputs[: self.taps] = self.conv_tail.copy()
                self.tail = 0
            return self._recorded[rows], self._projected[rows]
        inputs = workspace.array("conv_inputs", self.taps + rows, self.conv_inputs.shape[1])
        inputs[: self.taps] = self.conv_tail
        return inputs, inputs[self.taps :]

    def keep_tail(self, rows: int, inputs: FloatArray) -> None:
        """`inputs` is filled: remember its last rows, if they would otherwise be lost."""
        self._long_tail = inputs[rows:].copy() if rows > RECORDED_ROWS else None

    def commit(self, rows: int) -> None:
        self.current = 1 - self.current
        if self._long_tail is None:
            self.tail = rows
        else:
            self.conv_inputs[: self.taps] = self._long_tail
            self.tail, self._long_tail = 0, None

    def undo(self) -> None:
        """Back to before the last recorded pass."""
        self.current = 1 - self.current
        self.tail = 0

    def snapshot(self) -> tuple[FloatArray, FloatArray]:
        return self.state.copy(), self.conv_tail.copy()

    def restore(self, snapshot: tuple[FloatArray, FloatArray]) -> None:
        self.state[:] = snapshot[0]
        self.conv_inputs[: self.taps] = snapshot[1]
        self.tail = 0

    @property
    def nbytes(self) -> int:
        return self.states.nbytes + self.conv_inputs.nbytes + self.decay.nbytes + self.beta.nbytes


@dataclass(frozen=True, slots=True)
class TrunkSnapshot:
    """The recurrent states at a position. Attention rows before it stay in their caches, so it is small, but it is
    worth something only as long as the tokens before `position` are the same."""

    position: int
    recurrent: tuple[tuple[FloatArray, FloatArray] | None, ...]

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes + tail.nbytes for pair in self.recurrent if pair is not None for state, tail in [pair])


class TrunkState:
    """The caches of all layers and the position up to which they are filled."""

    def __init__(self, config: ModelConfig, context: int, kv: KvType = KV_TYPES["f32"]) -> None:
        """`kv`: what keys and values are stored as."""
        self.config = config
        self.context = context
        self.kv = kv
        self.position = 0
        self.recorded = 0
        """Rows of the last pass, if it can be rolled back; else 0."""
        self.spans: list[VisionSpan] = []
        """Pictures among the tokens, in order; those not read yet too."""
        self.layers: list[AttentionCache | RecurrentCache] = [
            AttentionCache(config.kv_heads, config.head_dim, kv) if kind == "full" else RecurrentCache(config)
            for kind in config.layers
        ]

    def begin(self, rows: int) -> None:
        """Make room for a pass of `rows` tokens."""
        for cache in self.layers:
            if isinstance(cache, AttentionCache):
                cache.reserve(self.position + rows, self.context)

    def commit(self, rows: int) -> None:
        """A pass of `rows` tokens is complete: its results are current."""
        for cache in self.layers:
            if isinstance(cache, RecurrentCache):
                cache.commit(rows)
        self.position += rows
        self.recorded = rows if rows <= RECORDED_ROWS else 0

    def abandon(self) -> None:
        """A pass failed: everything is as before it, but the pass before it can no longer be rolled back."""
        self.recorded = 0

    def snapshot(self) -> TrunkSnapshot:
        pairs = tuple(c.snapshot() if isinstance(c, RecurrentCache) else None for c in self.layers)
        return TrunkSnapshot(self.position, pairs)

    def restore(self, snapshot: TrunkSnapshot) -> None:
        """Go back to a snapshot of this conversation; attention rows before it must still be those of that time."""
        for cache, pair in zip(self.layers, snapshot.recurrent, strict=True):
            if isinstance(cache, RecurrentCache) and pair is not None:
                cache.restore(pair)
        self.forget_from(snapshot.position)
        self.recorded = 0

    def reset(self) -> None:
        """Forget everything; memory is kept for the next conversation."""
        for cache in self.layers:
            if isinstance(cache, RecurrentCache):
                cache.states[:] = 0
                cache.conv_inputs[:] = 0
                cache.tail = 0
        self.forget_from(0)
        self.recorded = 0

    def forget_from(self, position: int) -> None:
        """Tokens from `position` on are gone, and so are the pictures that began among them."""
        self.position = position
        self.spans = [span for span in self.spans if span.start < position]

    def clone(self) -> TrunkState:
        """An independent copy."""
        other = TrunkState(self.config, self.context, self.kv)
        other.spans = list(self.spans)
        other.restore(self.snapshot())
        for i, cache in enumerate(self.layers):
            if isinstance(cache, AttentionCache):
                other.layers[i] = cache.clone(self.position)
        return other

    @property
    def nbytes(self) -> int:
        return sum(cache.nbytes for cache in self.layers)
