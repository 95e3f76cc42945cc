"""The decoder of every weight format."""

from __future__ import annotations

from engine.kernels.matmul.decoder import Decoder
from engine.kernels.matmul.float_weights import FLOAT_DECODERS


def decoder_of(format_name: str) -> Decoder:
    """The decoder of a format of `formats.FORMATS`."""
    return FLOAT_DECODERS[format_name]
