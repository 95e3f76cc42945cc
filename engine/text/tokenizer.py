"""Text to token ids and back, for a tokenizer.json or the vocabulary inside a GGUF file.

The `tokenizers` library splits and merges ordinary text. Added tokens (`<|im_start|>`, `<think>` …) are cut out before
it: one loaded vocabulary serves both ways of reading a text, with them as tokens or as the plain characters they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers

from engine.errors import CheckpointError
from engine.files.bounded import JSON_LIMIT, read_text
from engine.files.tokenizer_source import TokenizerSource
from engine.text.byte_level import to_bytes

_SHIELD = "\ufdd0"
"""A code point that Unicode keeps out of texts; it parts a control token's first character from the rest."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is not made by merging: it is found in the text as it stands."""

    id: int
    content: str
    special: bool
    """A control token: no part of what a reader sees."""


class Tokenizer:
    """A byte-level BPE vocabulary with its added tokens. Ids run from 0 to `vocabulary` − 1, possibly with holes."""

    def __init__(
        self,
        bpe: tokenizers.Tokenizer,
        entries: Sequence[str | None],
        added: Iterable[AddedToken],
        notes: tuple[str, ...] = (),
    ) -> None:
        """`entries[id]` is the vocabulary's own spelling of a merged token, None where there is none."""
        self._bpe = bpe
        self._entries = entries
        self._added = {token.id: token for token in added}
        self._id_of_added = {token.content: token.id for token in self._added.values()}
        self._find_added = _finder(self._id_of_added)
        self._find_control = _finder(token.content for token in self._added.values() if token.special)
        self.notes = notes
        """Sentences for the person about how faithful this tokenizer is."""
        self.vocabulary = max(len(entries), max(self._added, default=-1) + 1)
        """One more than the highest id with a meaning. Rows of the head beyond it are padding and are never sampled."""

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Token ids of a text. With `special`, added tokens that are spelt out in it become their ids."""
        if not special or self._find_added is None:
            return self._encode_plain(text)
        ids: list[int] = []
        for index, piece in enumerate(self._find_added.split(text)):
            if index % 2:
                ids.append(self._id_of_added[piece])
            elif piece:
                ids += self._encode_plain(piece)
        return ids

    def shield(self, text: str) -> str:
        """`text` in a form in which `encode` takes control tokens that are spelt out in it for the characters they are.

        What a person writes goes through a chat template among control tokens that are meant; shielded before, it
        cannot end its own turn or begin another one.
        """
        plain = text.replace(_SHIELD, "")
        if self._find_control is None:
            return plain
        return self._find_control.sub(lambda found: found[0][0] + _SHIELD + found[0][1:], plain)

    def _encode_plain(self, text: str) -> list[int]:
        # Lone surrogates (a broken clipboard) have no UTF-8 form; they become "?".
        clean = text.replace(_SHIELD, "").encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._bpe.encode(clean, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids, without special tokens; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.output_bytes, ids)).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for, an added token's being its spelling; empty for an id without a token."""
        added = self._added.get(token)
        if added is not None:
            return added.content.encode()
        entry = self._entries[token] if 0 <= token < len(self._entries) else None
        return b"" if entry is None else to_bytes(entry)

    def output_bytes(self, token: int) -> bytes:
        """The bytes a token adds to a text: those of `token_bytes`, but none for special tokens."""
        return b"" if self.is_special(token) else self.token_bytes(token)

    def token_text(self, token: int) -> str:
        """A token by itself, to show: special tokens spelt out, parts of a character as U+FFFD."""
        return self.token_bytes(token).decode("utf-8", "replace")

    def is_special(self, token: int) -> bool:
        """Is this a control token?"""
        added = self._added.get(token)
        return added is not None and added.special

    def id_of(self, text: str) -> int | None:
        """The id of an added token by its spelling, or of a merged one by the vocabulary's own; None without one."""
        found = self._id_of_added.get(text)
        return self._bpe.token_to_id(text) if found is None else found


def _finder(spellings: Iterable[str]) -> re.Pattern[str] | None:
    """Finds any of `spellings`, the longest where several begin; None if there are none."""
    longest_first = sorted(filter(None, spellings), key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None


def open_tokenizer(source: TokenizerSource) -> Tokenizer:
    """Load the vocabulary (seconds for the largest).

    Raises:
        CheckpointError: there is none, it is damaged, or it is of another kind than byte-level BPE.
    """
    if source.json_path is not None:
        return tokenizer_from_json(read_text(source.json_path, JSON_LIMIT), source.json_path.name)
    if source.missing:
        raise CheckpointError(
            f"{source.missing} Without it there is no text; copy it there from the model's publisher."
        )
    if source.model != "gpt2":
        raise CheckpointError(
            f"The file's tokenizer is of the kind {source.model!r}, but this family's is byte-level BPE (gpt2)."
        )
    return tokenizer_from_vocabulary(source.tokens, source.token_types, source.merges, source.pre, "The file")


def tokenizer_from_json(text: str, where: str = "tokenizer.json") -> Tokenizer:
    """A tokenizer from the text of a `tokenizer.json`.

    Raises:
        CheckpointError: it is no tokenizer of the byte-level BPE kind.
    """
    try:
        data = json.loads(text)
        model, added = data["model"], [_added_token(item) for item in data.get("added_tokens") or ()]
        vocabulary: dict[str, int] = dict(model["vocab"])
        kind = model.get("type", "BPE")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{where} is not a tokenizer: {_reason(error)}; get the file again.") from None
    if kind != "BPE" or "ByteLevel" not in json.dumps(data.get("decoder")):
        raise CheckpointError(f"{where} holds a {kind} tokenizer, but models of this family use byte-level BPE.")
    entries = _entries(vocabulary, added, where)
    return Tokenizer(_build(data, where), entries, added)


def tokenizer_from_vocabulary(
    tokens: Sequence[str], types: Sequence[int], merges: Sequence[str], pre: str, where: str
) -> Tokenizer:
    """A tokenizer from the lists that a GGUF file carries (`tokenizer.ggml.tokens`, `token_type`, `merges`, `pre`).

    Raises:
        CheckpointError: the lists contradict each other.
    """
    if types and len(types) != len(tokens):
        raise CheckpointError(f"{where} has {len(tokens)} tokens but {len(types)} token types; get the file again.")
    kinds = types or [_NORMAL] * len(tokens)
    listed = list(zip(range(len(tokens)), tokens, kinds, strict=True))
    added = [AddedToken(i, text, kind == _CONTROL) for i, text, kind in listed if kind in (_CONTROL, _USER_DEFINED)]
    vocabulary = {text: i for i, text, kind in listed if kind not in (_CONTROL, _USER_DEFINED, _UNUSED)}
    pattern = PRE_TOKENIZERS.get(pre, PRE_TOKENIZERS["qwen35"])
    notes = (
        ()
        if pre in PRE_TOKENIZERS
        else (
            f"{where} asks for the pre-tokenizer {pre!r}, which is unknown here; qwen35 is "
            "used instead, so that some words may be split in another way.",
        )
    )
    data = {
        "version": "1.0",
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            ],
        },
        "model": {"type": "BPE", "vocab": vocabulary, "merges": list(merges)},
    }
    entries = _entries(vocabulary, added, where)
    return Tokenizer(_build(data, where), entries, added, notes)


_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5  # llama_token_type of the GGUF specification

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PRE_TOKENIZERS = {
    "qwen35": _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""How text is cut before merging, by the names that GGUF files use. qwen35 keeps combining marks with their letters."""


def _build(data: dict[str, Any], where: str) -> tokenizers.Tokenizer:
    """The library's tokenizer for a tokenizer.json, without its added tokens."""
    model = data["model"]
    frame = {**data, "added_tokens": [], "post_processor": None, "model": {"type": "BPE", "vocab": {}, "merges": []}}
    try:
        built = tokenizers.Tokenizer.from_str(json.dumps(frame))
        merges = [_pair(merge) for merge in model["merges"]]
        # Handing the vocabulary over as objects takes a third of the time of writing and reading it as JSON again.
        built.model = tokenizers.models.BPE(
            model["vocab"], merges, ignore_merges=bool(model.get("ignore_merges")), fuse_unk=bool(model.get("fuse_unk"))
        )
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{where} is not a usable tokenizer: {_reason(error)}.") from None
    return built


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    """Older files write a merge as one text with a space, newer ones as a list."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _entries(vocabulary: dict[str, int], added: Sequence[AddedToken], where: str) -> list[str | None]:
    """The vocabulary by id. An id far beyond the number of tokens would ask for memory that the file does not fill."""
    ids = [*vocabulary.values(), *(token.id for token in added)]
    if not all(type(token) is int for token in ids):
        raise CheckpointError(f"{where} is not a usable tokenizer: its ids are not whole numbers; get the file again.")
    unlikely = [token for token in (min(ids, default=0), max(ids, default=0)) if not 0 <= token < 2 * len(ids) + 65_536]
    if unlikely:
        raise CheckpointError(f"{where} gives a token the id {unlikely[0]:,}, but has only {len(ids):,} tokens.")
    entries: list[str | None] = [None] * (max(vocabulary.values(), default=-1) + 1)
    for entry, token in vocabulary.items():
        entries[token] = entry
    return entries


def _added_token(item: dict[str, Any]) -> AddedToken:
    return AddedToken(int(item["id"]), str(item["content"]), bool(item.get("special", False)))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")
