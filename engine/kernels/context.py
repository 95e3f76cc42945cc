"""What the kernels of one engine share: the number of threads, the arithmetic and memory for intermediate values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_ALIGNMENT = 64


class ComputeContext:
    """Belongs to one engine and is used by one thread at a time; engines side by side have one each."""

    def __init__(self, threads: int, float_activations: bool = False) -> None:
        """`float_activations` computes with float32 activations for every weight format instead of int8 ones for
        quantised weights: slower, for comparisons. Raises ValueError unless `threads` is positive."""
        if threads < 1:
            raise ValueError(f"the number of threads must be at least 1, not {threads}")
        self.threads = threads
        self.float_activations = float_activations
        self.moves = 0
        """How often scratch memory has moved: addresses in it from before are no longer good."""
        self._scratch = _aligned(1 << 16)
        self._plan = np.zeros(1 << 8, np.int64)

    def scratch(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """uint8 [nbytes], 64-byte aligned, contents undefined; the next call may return the same memory."""
        if nbytes > self._scratch.size:
            self._scratch = _aligned(max(nbytes, self._scratch.size * 2))
            self.moves += 1
        return self._scratch[:nbytes]

    def plan(self, fields: int) -> npt.NDArray[np.int64]:
        """int64 [at least `fields`] for what a dispatch tells its tasks, contents undefined, the same at every call."""
        if fields > self._plan.size:
            self._plan = np.zeros(2 * fields, np.int64)
        return self._plan


def _aligned(nbytes: int) -> npt.NDArray[np.uint8]:
    memory = np.zeros(nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + nbytes]
