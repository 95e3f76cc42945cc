"""Opens checkpoints in GGUF files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import CheckpointError, UnsupportedError
from engine.files.checkpoint import Checkpoint
from engine.files.config import ModelConfig
from engine.files.config_gguf import config_from_gguf
from engine.files.conventions import GGUF
from engine.files.expected import check_model
from engine.files.findings import Findings
from engine.files.gguf_cursor import Strings, Value
from engine.files.gguf_names import canonical_gguf_name
from engine.files.gguf_set import GgufSet, read_gguf_set
from engine.files.notes import ANNOUNCED_MTP, MTP_ALONE, NO_MTP
from engine.files.tensor_spec import TensorSpec
from engine.files.tokenizer_source import TEMPLATE_LIMIT, TokenizerSource

_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}
_REFUSED = {
    "MTP layer": MTP_ALONE,
    "vision tower": "is a vision tower (mmproj), not a language model: choose the model's own file.",
    "adapter": "is an adapter, not a model, and Draftscope does not apply adapters.",
}


def open_gguf(path: Path, findings: Findings) -> Checkpoint:
    """One GGUF file, or any part of a split one."""
    whole = read_gguf_set(path, findings)
    if whole.kind != "model":
        kind = UnsupportedError if whole.kind == "adapter" else CheckpointError
        raise kind(f"{path.name} {_REFUSED[whole.kind]}")
    config = config_from_gguf(whole.metadata, whole.tensors, path.name)
    tensors = canonical_tensors(whole, len(config.layers))
    notes = []
    if "mtp.fc.weight" not in tensors:
        notes.append(ANNOUNCED_MTP + NO_MTP if config.mtp_layers else NO_MTP)
        config = replace(config, mtp_layers=0)
    if whole.complete:
        check_model(config, tensors, findings, path.name)
    return Checkpoint(
        path=path,
        kind="gguf",
        name=whole.text("general.name") or path.stem,
        config=config,
        conventions=GGUF,
        mtp_conventions=GGUF,
        tensors=tensors,
        files=tuple(file.path for file in whole.files),
        tokenizer=_tokenizer(whole, config, findings),
        chat_template=_template(whole),
        generation_config=_sampling(whole.metadata, config),
        notes=tuple(notes),
    )


def canonical_tensors(whole: GgufSet, layers: int) -> dict[str, TensorSpec]:
    """The tensors by canonical name. An MTP layer without its own last norm uses the model's."""
    tensors = {}
    for name, spec in whole.tensors.items():
        canonical = canonical_gguf_name(name, layers)
        tensors[canonical] = replace(spec, name=canonical)
    if "mtp.fc.weight" in tensors and "mtp.norm.weight" not in tensors and "norm.weight" in tensors:
        tensors["mtp.norm.weight"] = replace(tensors["norm.weight"], name="mtp.norm.weight")
    return tensors


def _tokenizer(whole: GgufSet, config: ModelConfig, findings: Findings) -> TokenizerSource:
    metadata, of = whole.metadata, whole.files[0].path.name
    tokens, merges = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.merges")
    if not isinstance(tokens, Strings):
        return TokenizerSource(missing=f"{of} has no tokenizer in its metadata.")
    if len(tokens) > config.vocabulary:
        findings.add(f"{of} is damaged: {len(tokens):,} tokens for an embedding of {config.vocabulary:,} rows.")
    types = metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, np.ndarray) or types.dtype.kind not in "iu" or len(types) != len(tokens):
        findings.add(
            f"{of} is damaged: tokenizer.ggml.token_type does not give a type for each of {len(tokens):,} tokens."
        )
        types = np.ones(len(tokens), np.int32)
    return TokenizerSource(
        model=whole.text("tokenizer.ggml.model"),
        pre=whole.text("tokenizer.ggml.pre"),
        tokens=tokens,
        token_types=types.tolist(),
        merges=merges if isinstance(merges, Strings) else (),
        special_ids=_special_ids(metadata, len(tokens)),
        add_bos=metadata.get("tokenizer.ggml.add_bos_token") is True,
    )


def _special_ids(metadata: Mapping[str, Value], count: int) -> dict[str, int]:
    prefix, suffix = "tokenizer.ggml.", "_token_id"
    return {
        key[len(prefix) : -len(suffix)]: value
        for key, value in metadata.items()
        if key.startswith(prefix) and key.endswith(suffix) and type(value) is int and 0 <= value < count
    }


def _template(whole: GgufSet) -> str | None:
    template = whole.text("tokenizer.chat_template")
    return template if template and len(template) <= TEMPLATE_LIMIT else None


def _sampling(metadata: Mapping[str, Value], config: ModelConfig) -> dict[str, Any]:
    """The recommended sampling under generation_config.json's names."""
    found: dict[str, Any] = {"eos_token_id": list(config.eos_ids)} if config.eos_ids else {}
    for key, name in _SAMPLING.items():
        value = metadata.get(f"general.sampling.{key}")
        if type(value) in (int, float):
            found[name] = value
    return found
