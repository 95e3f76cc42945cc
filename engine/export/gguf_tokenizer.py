"""A tokenizer.json as GGUF metadata: tokens by id, their kinds, the merges, and which tokens begin and end what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import CheckpointError
from engine.export.gguf_writer import flag, i32s, text, texts, u32
from engine.files.bounded import JSON_LIMIT, read_json_object

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint

_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5
_SPECIAL = {"bos": "bos_token", "eos": "eos_token", "padding": "pad_token"}


def tokenizer_metadata(checkpoint: Checkpoint) -> dict[str, bytes]:
    """All `tokenizer.*` keys, the chat template included.

    Raises:
        CheckpointError: there is no tokenizer.json, or it is no byte-level BPE.
    """
    source = checkpoint.tokenizer
    if source.json_path is None:
        raise CheckpointError(f"{source.missing} A GGUF file needs it; copy it there from the model's publisher.")
    data = read_json_object(source.json_path, JSON_LIMIT)
    try:
        tokens, kinds, ids = _tokens(data, checkpoint.config.vocabulary)
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]]
        table = {
            "tokenizer.ggml.model": text("gpt2"),
            "tokenizer.ggml.pre": text(_pre_tokenizer(data)),
            "tokenizer.ggml.tokens": texts(tokens),
            "tokenizer.ggml.token_type": i32s(kinds),
            "tokenizer.ggml.merges": texts(merges),
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"{source.json_path.name} is not a byte-level BPE tokenizer: {error}.") from error
    table |= {f"tokenizer.ggml.{name}_token_id": u32(value) for name, value in _special(checkpoint, ids).items()}
    for name in ("add_bos_token", "add_eos_token"):
        table[f"tokenizer.ggml.{name}"] = flag(source.settings.get(name) is True)
    if checkpoint.chat_template is not None:
        table["tokenizer.chat_template"] = text(checkpoint.chat_template)
    return table


def _tokens(data: Mapping[str, Any], vocabulary: int) -> tuple[list[str], list[int], dict[str, int]]:
    """(spelling, kind) of every id, and the id of every spelling. Rows of the embedding without a token are unused;
    what is written `<|so|>` is a control token in GGUF files, whatever the tokenizer says."""
    ids: dict[str, int] = dict(data["model"]["vocab"])
    listed = [(spelling, token, _NORMAL) for spelling, token in ids.items()]
    for item in data.get("added_tokens") or ():
        spelling = item["content"]
        control = item.get("special") or (spelling.startswith("<|") and spelling.endswith("|>"))
        listed.append((spelling, item["id"], _CONTROL if control else _USER_DEFINED))
    tokens: list[str | None] = [None] * vocabulary
    kinds = [_UNUSED] * vocabulary
    for spelling, token, kind in listed:
        if not 0 <= token < vocabulary:
            raise ValueError(f"the token {spelling!r} has the id {token}, but there are {vocabulary} rows")
        ids[spelling], tokens[token], kinds[token] = token, spelling, kind
    return [f"[PAD{i}]" if token is None else token for i, token in enumerate(tokens)], kinds, ids


def _pre_tokenizer(data: Mapping[str, Any]) -> str:
    """The name of the rule that cuts text before merging."""
    from engine.text.tokenizer import PRE_TOKENIZERS

    pre = data.get("pre_tokenizer") or {}
    steps = pre.get("pretokenizers", [pre])
    patterns = [step["pattern"].get("Regex") for step in steps if step.get("type") == "Split"]
    known = {pattern: name for name, pattern in PRE_TOKENIZERS.items()}
    return next((known[pattern] for pattern in patterns if pattern in known), "qwen35")


def _special(checkpoint: Checkpoint, ids: Mapping[str, int]) -> dict[str, int]:
    found = {}
    for name, key in _SPECIAL.items():
        value = checkpoint.tokenizer.settings.get(key)
        spelling = value.get("content") if isinstance(value, dict) else value
        if isinstance(spelling, str) and spelling in ids:
            found[name] = ids[spelling]
    if "eos" not in found and checkpoint.config.eos_ids:
        found["eos"] = checkpoint.config.eos_ids[0]
    return found
