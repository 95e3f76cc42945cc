"""What a row of a KV cache may be stored as, and how many bytes it takes. Imports no Numba: plans are made with it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

BLOCK = 32
"""Numbers of a `q8` row that share a factor."""
F32, BF16, Q8 = range(3)
"""Codes that kernels know the types by."""


@dataclass(frozen=True, slots=True)
class KvType:
    """One of `KV_TYPES`."""

    name: str
    code: int

    def fits(self, head_dim: int) -> bool:
        """Whether heads of so many numbers can be stored."""
        return self.code != Q8 or head_dim % BLOCK == 0

    def row_bytes(self, head_dim: int) -> int:
        """Bytes of one position of one head's keys, or values.

        `q8`: head_dim signed bytes, then a float32 factor for each 32 of them. Raises ValueError if head_dim is no
        multiple of 32.
        """
        if not self.fits(head_dim):
            raise ValueError(f"a q8 KV cache needs heads of a multiple of {BLOCK} numbers, not {head_dim}")
        if self.code == Q8:
            return head_dim + head_dim // BLOCK * 4
        return head_dim * (4 if self.code == F32 else 2)


KV_TYPES = MappingProxyType({"f32": KvType("f32", F32), "bf16": KvType("bf16", BF16), "q8": KvType("q8", Q8)})
"""By name: float32, exact; bfloat16, half the bytes; signed bytes in blocks of 32, 9/32 of them."""
