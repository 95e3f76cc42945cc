"""Names in published and exported safetensors → canonical names."""

from __future__ import annotations

import re
from dataclasses import replace

from engine.errors import CheckpointError
from engine.files.tensor_spec import BLOCKS, TensorSpec

SCALE_SUFFIX = "_scale_inv"
"""`X.weight_scale_inv` (or `experts.gate_up_proj_scale_inv`) multiplies the FP8 blocks of `X.weight`."""

_TEXT = re.compile(r"(?:(?:model|language_model)\.){0,3}((?:embed_tokens|layers|norm|lm_head|mtp|d2t)(?:\..*)?)")
_VISION = re.compile(r"(?:(?:model|language_model)\.)*(?:visual|vision_tower|vision_model|merger)\.")
_HARMLESS = (".rotary_emb.inv_freq", ".input_scale", ".k_scale", ".v_scale", ".t2d")
_STORED = {".q8": "Q8_0", ".q4": "Q4_0"}
_EXPERTS = ".mlp.experts."


def canonical_name(name: str) -> str:
    """The canonical name of a text tensor; empty for what text does not need (vision tower, caches of other programs).

    Names that are not known come back as they are: they are reported, not dropped.
    """
    if name.endswith(_HARMLESS):
        return ""
    text = _TEXT.fullmatch(name)
    if text is None:
        return "" if _VISION.match(name) else name
    short = text[1]
    if ".mlp." in short:
        short = short.replace(".switch_mlp.", ".experts.")
        head, experts, part = short.partition(_EXPERTS)
        if experts and not part[:1].isdigit():  # packed: published without `.weight`
            short = head + experts + part.replace(".weight", "", 1)
    return short + "_inv" if short.endswith("_scale") else short


def canonical_spec(spec: TensorSpec) -> TensorSpec | None:
    """`spec` in its logical shape; None if text does not need it (its canonical name is empty).

    Pre-quantised `X.weight.q8` / `X.weight.q4` (bytes [rows, row bytes], rows of ggml's Q8_0 / Q4_0 blocks) become
    `X.weight` [rows, columns] of that format.
    """
    name = spec.name
    if not name:
        return None
    stored = _STORED.get(name[-3:])
    if stored is None:
        return spec
    elements, block_bytes = BLOCKS[stored]
    if spec.format not in ("U8", "I8") or len(spec.shape) not in (2, 3) or spec.shape[-1] % block_bytes:
        raise CheckpointError(
            f"{spec.where} must hold rows of {stored} blocks of {block_bytes} bytes (dtype U8); "
            f"it is {spec.format} {list(spec.shape)}."
        )
    columns = spec.shape[-1] // block_bytes * elements
    return replace(spec, name=name[:-3], format=stored, shape=(*spec.shape[:-1], columns))
