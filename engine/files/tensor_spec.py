"""Where a tensor's bytes are and what they mean, as its file's header says (checked, but not yet read)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BLOCKS: dict[str, tuple[int, int]] = {
    # Plain element types. (elements, bytes) of a block; an element is a block of one.
    "F64": (1, 8),
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "F8_E4M3": (1, 1),
    "F8_E5M2": (1, 1),
    "I64": (1, 8),
    "I32": (1, 4),
    "I16": (1, 2),
    "I8": (1, 1),
    "U64": (1, 8),
    "U32": (1, 4),
    "U16": (1, 2),
    "U8": (1, 1),
    "BOOL": (1, 1),
    # Blocks of ggml, as in its ggml-common.h.
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "IQ1_S": (256, 50),
    "IQ1_M": (256, 56),
    "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74),
    "IQ2_S": (256, 82),
    "IQ3_XXS": (256, 98),
    "IQ3_S": (256, 110),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
    "MXFP4": (32, 17),
}
"""Layouts with a known size, by name: (elements, bytes) of a block. A row is a whole number of blocks."""

FLOAT_FORMATS = frozenset({"F32", "F16", "BF16"})
INTEGER_FORMATS = frozenset({"I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"})
MATRIX_FORMATS = frozenset(BLOCKS) - INTEGER_FORMATS - {"F64", "F8_E5M2"}
"""What the kernels compute from."""


def stored_bytes(format_name: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of `shape` in a layout of `BLOCKS`; ValueError if a row is not a whole number of blocks."""
    elements, block_bytes = BLOCKS[format_name]
    if elements == 1:
        return math.prod(shape) * block_bytes
    columns = shape[-1] if shape else 1
    if columns % elements:
        raise ValueError(f"rows of {columns} are not a multiple of {format_name}'s blocks of {elements}")
    return math.prod(shape) // elements * block_bytes


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of a file: `nbytes` bytes from `offset` on, in layout `format`, row after row."""

    name: str
    """Canonical name: Hugging Face's without `model.` and `language_model.`."""
    format: str
    """A name of `BLOCKS` (as `Matrix.format`). Unknown types are `GGML_n` in GGUF, `dtype X` in safetensors."""
    shape: tuple[int, ...]
    """Rows first, also for GGUF."""
    file: Path
    offset: int
    """From the beginning of the file."""
    nbytes: int
    file_name: str
    """The tensor's name inside the file."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def where(self) -> str:
        """For messages: the tensor and its file, as a person finds them."""
        return f"Tensor {self.file_name} in {self.file.name}"


def distinct(specs: Iterable[TensorSpec]) -> Iterable[TensorSpec]:
    """Each stored tensor of a checkpoint once, though it may serve under two names."""
    return {spec.file_name: spec for spec in specs}.values()
