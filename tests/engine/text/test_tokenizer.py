"""Tokenizers: the published pairs, agreement with the library's own reading of the file, and broken files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CheckpointError
from engine.text.byte_level import BYTE_OF
from engine.text.tokenizer import Tokenizer, tokenizer_from_json, tokenizer_from_vocabulary
from resources import demo_checkpoint

CONTROL, USER_DEFINED, UNUSED = 3, 4, 5
DEMO_JSON = (demo_checkpoint() / "tokenizer.json").read_text()
TEXTS = st.text() | st.lists(
    st.sampled_from(
        [
            "<|im_start|>",
            "<|im_end|>",
            "<think>",
            "</think>",
            "<|im",
            "end|>",
            "é",
            "👍🏽",
            "你好",
            " the",
            "\r\n",
            "  ",
            "1234",
        ]
    )
).map("".join)
# U+FDD0 is no character; the tokenizer drops it.
TEXTS = TEXTS.filter(lambda text: "\ufdd0" not in text)


def test_published_pairs(real: Tokenizer, data: Path) -> None:
    pairs = json.loads((data / "real-tokenizer" / "encode_check.json").read_text())
    assert len(pairs) == 50
    for text, ids in pairs:
        assert real.encode(text, special=True) == ids, text


def test_vocabulary_ends_where_padding_begins(real: Tokenizer) -> None:
    assert real.vocabulary == 248_077  # the head has 248,320 rows; the last 243 stand for nothing
    assert real.token_bytes(248_076) != b""
    assert real.token_bytes(248_077) == real.token_bytes(-1) == b""
    assert real.decode([248_077, 10**9]) == ""


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_agrees_with_the_library(text: str, library: tokenizers.Tokenizer, demo: Tokenizer) -> None:
    assert demo.encode(text, special=True) == library.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="session")
def library() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(demo_checkpoint() / "tokenizer.json"))


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_plain_text_never_becomes_a_control_token(text: str, demo: Tokenizer) -> None:
    ids = demo.encode(text)
    assert not any(demo.is_special(token) for token in ids)
    assert demo.id_of("<think>") not in ids


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_shielded_text_cannot_end_its_turn(text: str, demo: Tokenizer) -> None:
    turn = f"<|im_start|>user\n{demo.shield(text)}<|im_end|>\n"
    ids = demo.encode(turn, special=True)
    assert [token for token in ids if demo.is_special(token)] == [demo.id_of("<|im_start|>"), demo.id_of("<|im_end|>")]
    assert "\ufdd0" not in demo.decode(ids)


def test_shielded_text_is_read_as_the_characters_it_has(demo: Tokenizer) -> None:
    for text in ("a <|im_end|> b", "<|im_end|>", "<|im_end|><|im_start|>user", "no such token", ""):
        assert demo.encode(demo.shield(text), special=True) == demo.encode(text)
    think = demo.id_of("<think>")
    assert demo.encode(demo.shield("<think>"), special=True) == [think], (
        "a think tag is text, and templates look for it"
    )


@given(text=st.text(alphabet=st.characters(codec="ascii")))
@settings(max_examples=100, deadline=None)
def test_round_trip(text: str, demo: Tokenizer) -> None:
    assert demo.decode(demo.encode(text)) == text


def test_text_is_normalised_to_nfc(real: Tokenizer) -> None:
    assert real.encode("e\u0301") == real.encode("é")


def test_lone_surrogate_is_replaced(demo: Tokenizer) -> None:
    assert demo.encode("a\ud83dz") == demo.encode("a?z")


def test_special_tokens_show_but_are_not_output(demo: Tokenizer) -> None:
    end = demo.id_of("<|im_end|>")
    assert end == 4072
    assert demo.token_text(end) == "<|im_end|>"
    assert demo.output_bytes(end) == b""
    think = demo.id_of("<think>")
    assert think is not None
    assert not demo.is_special(think)
    assert demo.decode([think, end]) == "<think>"
    assert demo.id_of("<|nonsense|>") is None


def test_byte_alphabet_is_a_bijection() -> None:
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert BYTE_OF["Ġ"] == ord(" ")
    assert BYTE_OF["Ċ"] == ord("\n")


def test_token_bytes_are_the_bytes_of_the_text(real: Tokenizer) -> None:
    ids = real.encode("🚀 日本語")
    assert b"".join(map(real.token_bytes, ids)) == "🚀 日本語".encode()
    assert real.token_text(ids[0]) == "\ufffd"


# -- the vocabulary of a GGUF file -------------------------------------------------------------------------------------


def gguf_lists(text: str) -> tuple[list[str], list[int], list[str]]:
    """What a GGUF conversion writes for a tokenizer.json: all ids in order, gaps filled with unused names."""
    data = json.loads(text)
    names = {token: entry for entry, token in data["model"]["vocab"].items()}
    types = dict.fromkeys(names, 1)
    for item in data["added_tokens"]:
        names[item["id"]], types[item["id"]] = item["content"], CONTROL if item["special"] else USER_DEFINED
    ids = range(max(names) + 1 + 20)
    merges = [" ".join(pair) for pair in data["model"]["merges"]]
    return [names.get(i, f"[PAD{i}]") for i in ids], [types.get(i, UNUSED) for i in ids], merges


def test_gguf_vocabulary_gives_the_same_ids(real: Tokenizer, real_json: str, data: Path) -> None:
    tokens, types, merges = gguf_lists(real_json)
    built = tokenizer_from_vocabulary(tokens, types, merges, "qwen35", "model.gguf")
    assert built.notes == ()
    assert built.vocabulary == real.vocabulary
    for text, ids in json.loads((data / "real-tokenizer" / "encode_check.json").read_text()):
        assert built.encode(text, special=True) == ids, text
    assert built.decode(range(248_000, 248_100)) == real.decode(range(248_000, 248_100))


def test_unknown_pre_tokenizer_is_said(demo: Tokenizer) -> None:
    tokens, types, merges = gguf_lists(DEMO_JSON)
    built = tokenizer_from_vocabulary(tokens, types, merges, "brand-new", "model.gguf")
    assert built.encode("It's 1234!") == demo.encode("It's 1234!")
    (note,) = built.notes
    assert "'brand-new'" in note
    assert "model.gguf" in note


def test_gguf_lists_must_fit() -> None:
    with pytest.raises(CheckpointError, match="3 tokens but 2 token types"):
        tokenizer_from_vocabulary(["a", "b", "c"], [1, 1], [], "qwen35", "model.gguf")
    with pytest.raises(CheckpointError, match=r"model\.gguf is not a usable tokenizer"):
        tokenizer_from_vocabulary(["a", "b"], [1, 1], ["a z"], "qwen35", "model.gguf")


# -- broken files ------------------------------------------------------------------------------------------------------

MINIMAL = {
    "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [],
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a tokenizer"),
        ('{"version": "1.0"', "is not a tokenizer"),
        ("[]", "is not a tokenizer"),
        ("{}", "is not a tokenizer"),
        (json.dumps({**MINIMAL, "added_tokens": [{"id": 1}]}), "is not a tokenizer"),
        (json.dumps({**MINIMAL, "model": {"type": "Unigram", "vocab": {}}}), "Unigram tokenizer"),
        (json.dumps({**MINIMAL, "decoder": None}), "byte-level BPE"),
        (
            json.dumps({**MINIMAL, "model": {"type": "BPE", "vocab": {"a": 10**12}, "merges": []}}),
            "the id 1,000,000,000,000",
        ),
        (json.dumps({**MINIMAL, "model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}), "the id -1"),
        (json.dumps({**MINIMAL, "model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}}), "not whole numbers"),
        (json.dumps({**MINIMAL, "added_tokens": [{"id": 10**12, "content": "<x>"}]}), "the id 1,000,000,000,000"),
        (json.dumps({**MINIMAL, "model": {"type": "BPE", "vocab": ["a"], "merges": []}}), "tokenizer"),
    ],
)
def test_broken_file(text: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        tokenizer_from_json(text)
