"""The decoder of every weight format."""

from __future__ import annotations

from functools import cache

from engine.kernels.matmul.blocks import COLUMNS, small_blocks_to_floats, super_block_to_floats
from engine.kernels.matmul.decoder import Decoder
from engine.kernels.matmul.float_weights import FLOAT_DECODERS
from engine.kernels.matmul.i_quants import I_QUANTS
from engine.kernels.matmul.k_quants import K_QUANTS
from engine.kernels.matmul.small_blocks import SMALL_BLOCKS
from engine.kernels.simd import Builder, Value

SUPER_BLOCKS = {**K_QUANTS, **I_QUANTS}


@cache
def decoder_of(format_name: str) -> Decoder:
    """The decoder of a format of `formats.FORMATS`."""
    if format_name in FLOAT_DECODERS:
        return FLOAT_DECODERS[format_name]
    if format_name in SMALL_BLOCKS:
        small_bytes, read_small = SMALL_BLOCKS[format_name]

        def emit_small(b: Builder, address: Value, _scale: Value) -> list[Value]:
            return small_blocks_to_floats(b, read_small(b, address))

        return Decoder(COLUMNS, small_bytes, emit_small)
    super_bytes, read_super = SUPER_BLOCKS[format_name]

    def emit_super(b: Builder, address: Value, _scale: Value) -> list[Value]:
        return super_block_to_floats(b, read_super(b, address))

    return Decoder(COLUMNS, super_bytes, emit_super)
