"""The MTP layer of a GGUF file: one alone, a FastMTP file with a trimmed head, or that of a whole model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.errors import SidecarError
from engine.files.findings import Findings
from engine.files.gguf_checkpoint import canonical_tensors
from engine.files.gguf_names import mtp_blocks
from engine.files.gguf_set import read_gguf_set
from engine.files.tensor_spec import TensorSpec


def gguf_sidecar(path: Path, findings: Findings) -> tuple[dict[str, TensorSpec], tuple[Path, ...]]:
    """(tensors by canonical name, files). A lone layer's `token_embd`, `output` and `d2t` are its own.

    Raises SidecarError if the file has no MTP layer.
    """
    whole = read_gguf_set(path, findings)
    if whole.kind in ("vision tower", "adapter"):
        raise SidecarError(
            f"{path.name} is no sidecar but {'a vision tower' if whole.kind != 'adapter' else 'an adapter'}."
        )
    blocks = mtp_blocks(whole.tensors)
    if not blocks:
        raise SidecarError(f"{path.name} is no sidecar: it has no MTP layer (nextn.eh_proj.weight is missing).")
    found = {}
    for name, spec in canonical_tensors(whole, min(blocks)).items():
        own = name if name.startswith("mtp.") else OWN.get(name) if whole.kind == "MTP layer" else None
        if own is not None:
            found[own] = replace(spec, name=own)
    return found, tuple(file.path for file in whole.files)


OWN = {"embed_tokens.weight": "mtp.embed_tokens.weight", "lm_head.weight": "mtp.lm_head.weight", "d2t": "mtp.d2t"}
"""Tensors beside a lone MTP layer, and what they are to the model that it drafts for."""
