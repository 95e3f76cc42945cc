"""Which format each matrix of a quantised file gets."""

from __future__ import annotations

from engine.errors import OptionError
from engine.files.tensor_spec import FLOAT_FORMATS, stored_bytes
from engine.kernels.formats import FORMATS
from engine.quantise.encode import WRITABLE
from engine.weights.roles import keeps_precision

MIXES = {"Q4_K_M": "Q4_K", "Q5_K_M": "Q5_K"}
"""Mixtures that give the tensors which suffer most from rounding more bits, and what the others are in."""
TYPES = (*WRITABLE, *MIXES)
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K": 11, "Q4_K": 14,
    "Q4_K_M": 15, "Q5_K": 16, "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "BF16": 32,
}  # fmt: skip
"""`general.file_type`: what other programs show as the file's quantisation."""
_SMALLER_BLOCKS = {
    "Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0", "IQ4_XS": "IQ4_NL",
}  # fmt: skip
"""For rows that are no multiple of 256."""
_ROUTER = ".mlp.gate.weight"
_SENSITIVE = ("v_proj.weight", "in_proj_qkv.weight")
_DOWN = ("mlp.down_proj.weight", "mlp.experts.down_proj")


def check_type(wanted: str) -> str:
    """`wanted` in the spelling of `TYPES`; OptionError for others."""
    if wanted.upper() not in TYPES:
        raise OptionError(f"The type {wanted} cannot be written; choose one of {', '.join(TYPES)}.")
    return wanted.upper()


def choose_format(name: str, shape: tuple[int, ...], source: str, wanted: str, layers: int, head: bool) -> str:
    """The format for a matrix: `name` canonical, `source` its format now, `wanted` of `TYPES`, in a model with `layers`
    blocks. `head`: it turns hidden states into logits."""
    if name.endswith(_ROUTER):
        return "F32"
    if wanted in FLOAT_FORMATS:
        return wanted
    if keeps_precision(name):
        return "BF16" if source.startswith("F8") else source
    chosen = _smaller_blocks(_mixed(name, wanted, layers, head), shape[-1], source)
    if source in FORMATS and not FORMATS[source].is_float:
        rounded_already = stored_bytes(source, shape) <= stored_bytes(chosen, shape)
        return source if rounded_already else chosen  # more bits would not bring back what is lost
    return chosen


def _mixed(name: str, wanted: str, layers: int, head: bool) -> str:
    base = MIXES.get(wanted, wanted)
    if head:
        return base if base in ("Q8_0", "Q6_K") else "Q6_K"
    if wanted in MIXES and name.endswith((*_SENSITIVE, *_DOWN)) and _more_bits(name, layers):
        return "Q6_K"
    return base


def _more_bits(name: str, layers: int) -> bool:
    """The first and last eighth of the blocks, and a third of those between, as llama.cpp's mixtures do."""
    block = layers - 1 if name.startswith("mtp.") else int(name.split(".")[1])
    eighth = layers // 8
    return block < eighth or block >= 7 * layers // 8 or (block - eighth) % 3 == 2


def _smaller_blocks(format_name: str, columns: int, source: str) -> str:
    if columns % FORMATS[format_name].block_elements:
        format_name = _SMALLER_BLOCKS.get(format_name, format_name)
    if columns % FORMATS[format_name].block_elements:
        return source if source in FLOAT_FORMATS else "F16"
    return format_name
