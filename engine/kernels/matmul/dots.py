"""Which arithmetic a kernel has: by weight format and by the activations that it takes."""

from __future__ import annotations

from functools import cache

from engine.kernels.formats import FORMATS
from engine.kernels.matmul.decoders import SUPER_BLOCKS, decoder_of
from engine.kernels.matmul.dot import Dot
from engine.kernels.matmul.float_weights import FLOAT_DOTS, float_dot
from engine.kernels.matmul.int8_dot import small_blocks_dot, super_block_dot
from engine.kernels.matmul.small_blocks import SMALL_BLOCKS

_WITH_FLOATS = " float"


def kernel_name(format_name: str, float_activations: bool) -> str:
    """The kernel for weights of a format; formats of single numbers have float activations in any case."""
    with_floats = float_activations and not FORMATS[format_name].is_float
    return format_name + _WITH_FLOATS if with_floats else format_name


@cache
def dot_of(kernel: str) -> Dot:
    """The step of the kernel that `kernel_name` names."""
    if kernel in FLOAT_DOTS:
        return FLOAT_DOTS[kernel]
    if kernel.endswith(_WITH_FLOATS):
        return float_dot(decoder_of(kernel.removesuffix(_WITH_FLOATS)))
    if kernel in SMALL_BLOCKS:
        return small_blocks_dot(*SMALL_BLOCKS[kernel])
    return super_block_dot(*SUPER_BLOCKS[kernel])


def activations_of(kernel: str) -> str:
    """How the kernel wants its activations: a name of `activations.PREPARATIONS`, or "floats" as they are."""
    if kernel == "BF16":
        return "even_odd"
    if kernel in SMALL_BLOCKS:
        return "int8_small"
    return "int8_super" if kernel in SUPER_BLOCKS else "floats"
