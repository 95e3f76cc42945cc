"""Which arithmetic a kernel has: by weight format and by the activations that it takes."""

from __future__ import annotations

from functools import cache

from engine.kernels.formats import FORMATS
from engine.kernels.matmul.blocks import COLUMNS
from engine.kernels.matmul.decoder import Decoder
from engine.kernels.matmul.decoders import SUPER_BLOCKS, decoder_of
from engine.kernels.matmul.dot import Dot
from engine.kernels.matmul.float_weights import FLOAT_DOTS, float_dot
from engine.kernels.matmul.i_quants import I_QUANTS
from engine.kernels.matmul.int8_dot import RECORD_BYTES, multiply
from engine.kernels.matmul.operands import (
    Kind,
    SmallOperands,
    SuperOperands,
    kind_of_name,
    load_operands,
    small_operands,
    super_operands,
)
from engine.kernels.matmul.small_blocks import SMALL_BLOCKS
from engine.kernels.simd import Builder, Value

_WITH_FLOATS = " float"
_PANELS = "panels "


def kernel_name(format_name: str, float_activations: bool) -> str:
    """The kernel for weights of a format; formats of single numbers have float activations in any case."""
    with_floats = float_activations and not FORMATS[format_name].is_float
    return format_name + _WITH_FLOATS if with_floats else format_name


def activations_of(kernel: str) -> str:
    """How the kernel wants its activations: a name of `activations.PREPARATIONS`."""
    if kernel == "BF16":
        return "even_odd"
    if kernel in SMALL_BLOCKS:
        return "int8_small"
    return "int8_super" if kernel in SUPER_BLOCKS else "floats"


def rows_for_panels(kernel: str) -> int:
    """From how many rows of activations on decoding weights into a panel costs less than decoding them in every pass
    over the activations; 0 when the kernel has no panels."""
    if kernel in SMALL_BLOCKS or kernel in SUPER_BLOCKS:
        looks_up = kernel in I_QUANTS and kernel != "IQ4_XS"
        return 5 if looks_up else 16  # looking entries up in a codebook is dear
    return 5 if has_float_panels(kernel) else 0


def has_float_panels(kernel: str) -> bool:
    """Whether what the kernel decodes is floats, which then are multiplied as F32 weights are."""
    return kernel.endswith(_WITH_FLOATS) or kernel == "F8_E4M3"


def decoder_of_kernel(kernel: str) -> Decoder:
    """The decoder of the weights of a kernel."""
    return decoder_of(kernel.removesuffix(_WITH_FLOATS))


def panel_kernel_name(kind: Kind) -> str:
    """The kernel that multiplies panels of a kind."""
    return _PANELS + kind.name


def read_operands(b: Builder, kernel: str, address: Value) -> SmallOperands | SuperOperands:
    """Decode 256 columns of a block format."""
    if kernel in SMALL_BLOCKS:
        return small_operands(b, SMALL_BLOCKS[kernel][1](b, address))
    return super_operands(b, SUPER_BLOCKS[kernel][1](b, address))


@cache
def dot_of(kernel: str) -> Dot:
    """The step of the kernel that `kernel_name` or `panel_kernel_name` names."""
    if kernel in FLOAT_DOTS:
        return FLOAT_DOTS[kernel]
    if kernel.endswith(_WITH_FLOATS):
        return float_dot(decoder_of_kernel(kernel), 1)
    if kernel.startswith(_PANELS):
        return _panel_dot(kind_of_name(kernel.removeprefix(_PANELS)))

    def emit(
        b: Builder, accumulators: list[Value], weights: Value, activations: list[Value], _scale: Value
    ) -> list[Value]:
        return multiply(b, read_operands(b, kernel, weights), accumulators, activations)

    return Dot(COLUMNS, decoder_of(kernel).weight_bytes, RECORD_BYTES, 1, emit)


def _panel_dot(kind: Kind) -> Dot:
    def emit(
        b: Builder, accumulators: list[Value], weights: Value, activations: list[Value], _scale: Value
    ) -> list[Value]:
        return multiply(b, load_operands(b, kind, weights), accumulators, activations)

    return Dot(COLUMNS, kind.bytes, RECORD_BYTES, 1, emit)
