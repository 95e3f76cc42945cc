"""Think blocks in prompts."""

from __future__ import annotations

from engine.text.thinking import ThinkTokens, find_think_tokens
from engine.text.tokenizer import Tokenizer, tokenizer_from_vocabulary


def test_found_in_the_vocabulary(demo: Tokenizer) -> None:
    think = find_think_tokens(demo)
    assert think is not None
    assert demo.decode([think.open, think.close]) == "<think></think>"


def test_absent_from_other_vocabularies() -> None:
    plain = tokenizer_from_vocabulary(["a"], [1], [], "qwen35", "model.gguf")
    assert find_think_tokens(plain) is None


def test_inside() -> None:
    think = ThinkTokens(open=1, close=2)
    assert not think.inside([])
    assert not think.inside([5, 6])
    assert think.inside([5, 1, 6])
    assert not think.inside([1, 6, 2, 7])
    assert think.inside([1, 6, 2, 7, 1])
    assert not think.inside([2])
