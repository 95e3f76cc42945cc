"""The layouts of weight matrices: how many elements a block holds and in how many bytes.

Names and sizes are ggml's; `F8_E4M3` is the FP8 of safetensors checkpoints, with one factor per 128 × 128 block beside.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """One layout: rows are whole blocks of `block_elements` elements in `block_bytes` bytes."""

    name: str
    block_elements: int
    block_bytes: int

    @property
    def is_float(self) -> bool:
        """Whether every element stands for itself, so that rows of any length are possible."""
        return self.block_elements == 1


_SIZES: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "F8_E4M3": (1, 1),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "IQ4_NL": (32, 18),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
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
    "IQ4_XS": (256, 136),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
}

FORMATS: dict[str, Format] = {name: Format(name, *sizes) for name, sizes in _SIZES.items()}


def row_bytes(format_name: str, cols: int) -> int:
    """Bytes of one row of `cols` elements.

    Raises ValueError when the format is unknown or a row is no whole number of its blocks.
    """
    layout = FORMATS.get(format_name)
    if layout is None:
        raise ValueError(f"there is no weight format {format_name!r}; known are {', '.join(FORMATS)}")
    if cols <= 0 or cols % layout.block_elements:
        raise ValueError(f"{cols} columns are no whole number of {format_name} blocks of {layout.block_elements}")
    return cols // layout.block_elements * layout.block_bytes
