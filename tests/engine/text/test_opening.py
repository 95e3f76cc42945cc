"""Tokenizers and templates as checkpoints bring them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CheckpointError
from engine.files.checkpoint import open_checkpoint
from engine.files.tokenizer_source import TokenizerSource
from engine.text.chat_template import open_chat_template, template_tokens
from engine.text.tokenizer import Tokenizer, open_tokenizer
from resources import demo_checkpoint

TEXT = "<|im_start|>user\nThe rain in 1999, naïve 🚀<|im_end|>"


def test_demo_checkpoint() -> None:
    checkpoint = open_checkpoint(demo_checkpoint())
    tokenizer = open_tokenizer(checkpoint.tokenizer)
    assert tokenizer.vocabulary == 4096
    assert tokenizer.decode(tokenizer.encode(TEXT, special=True)) == "user\nThe rain in 1999, naïve 🚀"
    prompt = open_chat_template(checkpoint).render([{"role": "user", "content": "Hi"}])
    assert prompt.startswith("<|im_start|>user\nHi<|im_end|>")
    assert open_chat_template(checkpoint).knows_thinking
    assert template_tokens(checkpoint.tokenizer) == {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


def test_gguf_equals_folder(data: Path) -> None:
    folder = open_checkpoint(data / "tiny-dense")
    packed = open_checkpoint(data / "tiny-dense" / "gguf" / "tiny-dense-Q8_0.gguf")
    ours, theirs = open_tokenizer(folder.tokenizer), open_tokenizer(packed.tokenizer)
    assert ours.encode(TEXT, special=True) == theirs.encode(TEXT, special=True)
    assert [ours.token_bytes(i) for i in range(1024)] == [theirs.token_bytes(i) for i in range(1024)]
    # A conversion also marks the fill-in-the-middle tokens as control tokens; those of thinking and tools stay text.
    control = [{t for t in range(1024) if tokenizer.is_special(t)} for tokenizer in (ours, theirs)]
    assert control[0] < control[1]
    assert {theirs.token_text(t)[:6] for t in control[1] - control[0]} == {"<|fim_", "<|repo", "<|file"}
    assert ours.vocabulary == theirs.vocabulary
    assert theirs.notes == ()
    messages = [{"role": "user", "content": "Hi"}]
    assert not open_chat_template(folder).knows_thinking
    assert open_chat_template(folder).render(messages) == open_chat_template(packed).render(messages)
    assert template_tokens(packed.tokenizer)["eos_token"] == "<|im_end|>"


def test_missing_tokenizer_is_said() -> None:
    with pytest.raises(CheckpointError, match=r"model has no tokenizer\.json\. Without it there is no text"):
        open_tokenizer(TokenizerSource(missing="model has no tokenizer.json."))


def test_other_kinds_are_refused() -> None:
    with pytest.raises(CheckpointError, match="of the kind 'llama'"):
        open_tokenizer(TokenizerSource(model="llama", tokens=("a",)))


def test_tokens_given_as_objects() -> None:
    source = TokenizerSource(settings={"bos_token": {"content": "<s>"}, "eos_token": None, "pad_token": 3})
    assert template_tokens(source) == {"bos_token": "<s>"}


def test_vocabulary_may_be_smaller_than_the_head(demo: Tokenizer) -> None:
    assert demo.vocabulary <= open_checkpoint(demo_checkpoint()).config.vocabulary
