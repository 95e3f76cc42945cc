"""Which arithmetic a kernel has: by weight format and by the activations that it takes."""

from __future__ import annotations

from engine.kernels.matmul.dot import Dot
from engine.kernels.matmul.float_weights import FLOAT_DOTS


def dot_of(kernel: str) -> Dot:
    """The step of the kernel named `<format>`."""
    return FLOAT_DOTS[kernel]
