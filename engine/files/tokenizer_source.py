"""Where a checkpoint's tokenizer and chat template are; they are opened by engine.text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError
from engine.files.bounded import read_json_object, read_text
from engine.files.findings import Findings

TEMPLATE_LIMIT = 1 << 20
SETTINGS_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class TokenizerSource:
    """`json_path` (a tokenizer.json), or `tokens` and `merges` from GGUF metadata, or neither: `missing` says why."""

    json_path: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """tokenizer_config.json, or an empty table."""
    model: str = ""
    """GGUF: `tokenizer.ggml.model` (`gpt2` is byte-level BPE)."""
    pre: str = ""
    """GGUF: name of the rule that splits text before the merges (`qwen35`)."""
    tokens: Sequence[str] = ()
    """GGUF: the text of every id, in byte-level alphabet; decoded only when looked at."""
    token_types: Sequence[int] = ()
    """GGUF: per id 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte."""
    merges: Sequence[str] = ()
    special_ids: Mapping[str, int] = field(default_factory=dict)
    """GGUF: `bos`, `eos`, `padding`, … → id."""
    add_bos: bool = False
    missing: str = ""
    """Why there is no tokenizer."""


def folder_tokenizer(folder: Path, findings: Findings) -> TokenizerSource:
    """The tokenizer of a published folder."""
    path = folder / "tokenizer.json"
    settings = _optional_object(folder / "tokenizer_config.json", findings)
    if not path.is_file():
        return TokenizerSource(settings=settings, missing=f"{folder.name} has no tokenizer.json.")
    return TokenizerSource(json_path=path, settings=settings, add_bos=settings.get("add_bos_token") is True)


def folder_template(folder: Path, settings: Mapping[str, Any], findings: Findings) -> str | None:
    """The chat template: chat_template.jinja, or the one (called `default`, of several) in tokenizer_config.json."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return read_text(path, TEMPLATE_LIMIT)
        except CheckpointError as error:
            findings.add(error)
            return None
    value = settings.get("chat_template")
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        value = named.get("default")
    return value if isinstance(value, str) and len(value) <= TEMPLATE_LIMIT else None


def generation_settings(folder: Path, findings: Findings) -> dict[str, Any]:
    """generation_config.json, or an empty table."""
    return _optional_object(folder / "generation_config.json", findings)


def _optional_object(path: Path, findings: Findings) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_json_object(path, SETTINGS_LIMIT)
    except CheckpointError as error:
        findings.add(error)
        return {}
