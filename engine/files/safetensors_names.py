"""Names in published and exported safetensors → canonical names."""

from __future__ import annotations

import re
from dataclasses import replace

from engine.errors import CheckpointError
from engine.files.tensor_spec import BLOCKS, TensorSpec

SCALE_SUFFIX = "_scale_inv"
"""`X.weight_scale_inv` (or `experts.gate_up_proj_scale_inv`) multiplies the FP8 blocks of `X.weight`."""

_WRAPPERS = re.compile(r"^(?:(?:model|language_model)\.){1,3}")
_TEXT = re.compile(r"^(?:embed_tokens|layers|norm|lm_head|mtp|d2t)(?:\.|$)")
_VISION = re.compile(r"^(?:visual|vision_tower|vision_model|multi_modal_projector|merger)\.")
_HARMLESS = re.compile(r"(?:\.rotary_emb\.inv_freq|\.(?:input|k|v)_scale|(?:^|\.)t2d)$")
_STORED = {".q8": "Q8_0", ".q4": "Q4_0"}
_PACKED_EXPERTS = re.compile(
    r"\.mlp\.(?:switch_mlp|experts)\.(gate_up_proj|gate_proj|up_proj|down_proj)(?:\.weight)?(?=$|[._]|\.q[48])"
)


def canonical_name(name: str) -> str | None:
    """The canonical name of a text tensor; None for what text does not need (vision tower, caches of other programs).

    Names that are not known come back as they are: they are reported, not dropped.
    """
    short = _WRAPPERS.sub("", name)
    if _VISION.match(short) or _HARMLESS.search(short):
        return None
    if not _TEXT.match(short):
        return name
    short = _PACKED_EXPERTS.sub(r".mlp.experts.\1", short)
    if short.endswith("_scale"):
        short += "_inv"
    return short


def canonical_spec(spec: TensorSpec) -> TensorSpec | None:
    """`spec` under its canonical name, in its logical shape; None if text does not need it.

    Pre-quantised `X.weight.q8` / `X.weight.q4` (bytes [rows, row bytes], rows of ggml's Q8_0 / Q4_0 blocks) become
    `X.weight` [rows, columns] of that format.
    """
    name = canonical_name(spec.file_name)
    if name is None:
        return None
    stored = _STORED.get(name[-3:])
    if stored is None:
        return replace(spec, name=name)
    elements, block_bytes = BLOCKS[stored]
    if spec.format not in ("U8", "I8") or len(spec.shape) not in (2, 3) or spec.shape[-1] % block_bytes:
        raise CheckpointError(
            f"{spec.where} must hold rows of {stored} blocks of {block_bytes} bytes (dtype U8); "
            f"it is {spec.format} {list(spec.shape)}."
        )
    columns = spec.shape[-1] // block_bytes * elements
    return replace(spec, name=name[:-3], format=stored, shape=(*spec.shape[:-1], columns))
