"""The vision tower: patches of a picture in, soft tokens for the text model out.

patch embedding + interpolated position table → blocks (x += attention(LN x); x += mlp(LN x), rotary by row and column,
full attention inside one picture) → merger (LN, 2 × 2 patches side by side, two linear layers).

Blocks are read from the file as they are needed and dropped again: a picture is read once, the tower is needed rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.files.tensor_spec import TensorSpec
from engine.files.vision import VisionSource
from engine.kernels.context import ComputeContext
from engine.kernels.matmul import linear
from engine.kernels.matrix import Matrix
from engine.kernels.vision import add_bias, bias_gelu_erf, bias_gelu_tanh, layer_norm
from engine.weights.file_layer import DiskFiles, FileLayer, read_exactly
from engine.weights.vectors import to_float32

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

_EPS = np.float32(1e-6)
_THETA = 10_000.0
_QUERY_ROWS = 512
"""Attention scores are made for so many patches at a time, so that a large picture needs no n × n array."""


class VisionTower:
    """Turns preprocessed pictures into embeddings."""

    def __init__(self, source: VisionSource, context: ComputeContext, files: FileLayer | None = None) -> None:
        self.config = source.config
        self._source = source
        self._context = context
        self._files = files or DiskFiles()

    def encode(self, patches: FloatArray, grid: tuple[int, int], cancel: CancelToken | None = None) -> FloatArray:
        """Soft tokens [n / merge², text hidden size] of one picture.

        Args:
            patches: [n, 3 · 2 · patch²] in token order (`engine.pictures.patches`).
            grid: (rows, columns) of patches.
            cancel: checked before every block.

        Raises:
            ReadError: the tower's file cannot be read.
            Cancelled: `cancel` was set.
        """
        steps = self.encode_stepwise(patches, grid, cancel)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                soft: FloatArray = end.value
                return soft

    def encode_stepwise(
        self, patches: FloatArray, grid: tuple[int, int], cancel: CancelToken | None = None
    ) -> Generator[int, None, FloatArray]:
        """The same, yielding the number of blocks done before each block."""
        c = self.config
        x = self._linear("patch_embed.proj", patches, self._patch_matrix())
        x += self._position_embedding(grid)
        cos, sin = tower_rotary(grid, c.hidden_size // c.heads, c.merge)
        for i in range(c.depth):
            if cancel is not None:
                cancel.check()
            yield i
            self._block(i, x, cos, sin)
        return self._merge(x)

    def _block(self, index: int, x: FloatArray, cos: FloatArray, sin: FloatArray) -> None:
        p = f"blocks.{index}."
        x += self._attention(p, self._norm(p + "norm1", x), cos, sin)
        hidden = self._linear(p + "mlp.linear_fc1", self._norm(p + "norm2", x), bias=bias_gelu_tanh)
        x += self._linear(p + "mlp.linear_fc2", hidden)

    def _attention(self, p: str, x: FloatArray, cos: FloatArray, sin: FloatArray) -> FloatArray:
        c = self.config
        size = c.hidden_size // c.heads
        qkv = self._linear(p + "attn.qkv", x).reshape(len(x), 3, c.heads, size)
        q, k = (_rotate(qkv[:, i], cos, sin).transpose(1, 0, 2) for i in (0, 1))  # [heads, n, size]
        v = qkv[:, 2].transpose(1, 0, 2)
        out = np.empty((len(x), c.heads, size), np.float32)
        for start in range(0, len(x), _QUERY_ROWS):
            rows = slice(start, start + _QUERY_ROWS)
            scores = np.matmul(q[:, rows], k.transpose(0, 2, 1)) * np.float32(size**-0.5)
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            out[rows] = np.matmul(scores, v).transpose(1, 0, 2)
        return self._linear(p + "attn.proj", out.reshape(len(x), -1))

    def _merge(self, x: FloatArray) -> FloatArray:
        merged = self._norm("merger.norm", x).reshape(len(x) // self.config.merge**2, -1)
        hidden = self._linear("merger.linear_fc1", merged, bias=bias_gelu_erf)
        return self._linear("merger.linear_fc2", hidden)

    def _position_embedding(self, grid: tuple[int, int]) -> FloatArray:
        """The square table of positions, interpolated to the grid [n, H]."""
        table = self._vector("pos_embed.weight").reshape(self.config.positions, -1)
        ids, shares = position_taps(grid, int(self.config.positions**0.5), self.config.merge)
        total: FloatArray = (table[ids] * shares[:, :, None]).sum(1, dtype=np.float32)
        return total

    # ---- weights

    def _linear(
        self,
        name: str,
        x: FloatArray,
        matrix: Matrix | None = None,
        bias: Callable[[FloatArray, FloatArray], None] = add_bias,
    ) -> FloatArray:
        """x W^T, then `bias` (which may apply an activation too) in place."""
        matrix = matrix or self._matrix(f"{name}.weight")
        out = np.empty((len(x), matrix.rows), np.float32)
        linear(self._context, matrix, np.ascontiguousarray(x), out)
        bias(out, self._vector(f"{name}.bias"))
        return out

    def _norm(self, name: str, x: FloatArray) -> FloatArray:
        out = np.empty_like(x)
        layer_norm(x, self._vector(f"{name}.weight"), self._vector(f"{name}.bias"), _EPS, out)
        return out

    def _matrix(self, name: str) -> Matrix:
        spec = self._source.tensors[name]
        return Matrix(spec.format, spec.shape[0], spec.elements // spec.shape[0], self._bytes(spec))

    def _patch_matrix(self) -> Matrix:
        """The patch embedding [H, 3 · 2 · patch²]; GGUF files keep each frame's half [H, 3, patch, patch] apart."""
        if "patch_embed.proj.weight.1" not in self._source.tensors:
            return self._matrix("patch_embed.proj.weight")
        area = self.config.patch**2
        halves = [self._vector(f"patch_embed.proj.weight{tail}").reshape(-1, 3, area) for tail in ("", ".1")]
        whole = np.ascontiguousarray(np.stack(halves, axis=2)).reshape(-1, 6 * area)
        return Matrix("F32", *whole.shape, whole.view(np.uint8).reshape(-1))

    def _vector(self, name: str) -> FloatArray:
        spec = self._source.tensors[name]
        return to_float32(spec, self._bytes(spec)).reshape(-1)

    def _bytes(self, spec: TensorSpec) -> npt.NDArray[np.uint8]:
        raw = np.empty(spec.nbytes, np.uint8)
        file = self._files.open(spec.file, direct=False)
        try:
            read_exactly(file, spec.file, spec.offset, raw.data, spec.nbytes)
        finally:
            file.close()
        return raw


def merged_order(grid: tuple[int, int], merge: int) -> tuple[IntArray, IntArray]:
    """(row, column) of every patch in token order: merge × merge blocks in raster order, raster order inside each."""
    height, width = grid
    shape = (height // merge, merge, width // merge, merge)
    row, column = np.mgrid[0:height, 0:width].astype(np.int64)
    rows, columns = (axis.reshape(shape).transpose(0, 2, 1, 3).reshape(-1) for axis in (row, column))
    return rows, columns


def position_taps(grid: tuple[int, int], side: int, merge: int) -> tuple[IntArray, FloatArray]:
    """Bilinear interpolation of a side × side table, corners aligned: table rows [n, 4] and their shares [n, 4]."""

    def axis(index: IntArray, count: int) -> tuple[IntArray, FloatArray]:
        source = index.astype(np.float32) * np.float32(side - 1) / np.float32(max(count - 1, 1))
        low = np.floor(source)
        taps = np.stack([low, low + 1], -1).astype(np.int64).clip(0, side - 1)
        return taps, np.stack([1 - (source - low), source - low], -1).astype(np.float32)

    row, column = merged_order(grid, merge)
    (rows, row_share), (columns, column_share) = axis(row, grid[0]), axis(column, grid[1])
    ids = (rows[:, :, None] * side + columns[:, None]).reshape(-1, 4)
    return ids, (row_share[:, :, None] * column_share[:, None]).reshape(-1, 4)


def tower_rotary(grid: tuple[int, int], size: int, merge: int) -> tuple[FloatArray, FloatArray]:
    """cos, sin [n, size]: angles [row f | column f | row f | column f] with f_j = theta^(−2j / (size / 2))."""
    row, column = merged_order(grid, merge)
    exponents = np.arange(0, size // 2, 2, dtype=np.float32) / np.float32(size // 2)
    frequencies = (1.0 / np.float32(_THETA) ** exponents).astype(np.float32)
    angles = np.concatenate([row[:, None] * frequencies, column[:, None] * frequencies], 1).astype(np.float32)
    angles = np.concatenate([angles, angles], 1)
    return np.cos(angles), np.sin(angles)


def _rotate(x: FloatArray, cos: FloatArray, sin: FloatArray) -> FloatArray:
    """Rotate-half over whole heads, x [n, heads, size]."""
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], -1)
    return np.asarray(x * cos[:, None] + turned * sin[:, None], np.float32)
