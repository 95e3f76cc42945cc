"""Rotary positions of tokens, with pictures among them (multimodal RoPE).

Text advances all three axes (time, height, width) by one a token. A picture's tokens stand at one time, at their row
and column of the merged grid; after it, text goes on behind the larger of the two sides, which is less than the number
of its tokens. Caches, masks and recurrent states go by index; only the rotation goes by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VisionSpan:
    """Where a picture stands: `height` × `width` soft tokens from index `start` on."""

    start: int
    height: int
    width: int

    @property
    def tokens(self) -> int:
        return self.height * self.width

    @property
    def end(self) -> int:
        return self.start + self.tokens

    @property
    def saved(self) -> int:
        """By how much positions behind the picture lag behind indices."""
        return self.tokens - max(self.height, self.width)


def rope_positions(spans: Sequence[VisionSpan], start: int, count: int) -> IntArray:
    """Positions of the tokens at indices `start` … `start + count − 1`: [count] without pictures before their end, else
    [3, count]. `spans` are in order and do not overlap."""
    index = np.arange(start, start + count, dtype=np.int64)
    relevant = [span for span in spans if span.start < start + count]
    if not relevant:
        return index
    positions = np.tile(index, (3, 1))
    for span in relevant:
        positions[:, index >= span.end] -= span.saved
        inside = (index >= span.start) & (index < span.end)
        if inside.any():
            k = index[inside] - span.start
            origin = positions[0, inside] - k  # position at which the picture begins
            positions[:, inside] = origin + np.stack([np.zeros_like(k), k // span.width, k % span.width])
    return positions
