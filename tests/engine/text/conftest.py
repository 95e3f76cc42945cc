"""The tokenizers that the text tests share."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from engine.text.tokenizer import Tokenizer, tokenizer_from_json
from resources import demo_checkpoint


@pytest.fixture(scope="session")
def real_json(data: Path) -> str:
    """The tokenizer.json of the published models: 248,077 ids."""
    return lzma.decompress((data / "real-tokenizer" / "tokenizer.json.xz").read_bytes()).decode()


@pytest.fixture(scope="session")
def real(real_json: str) -> Tokenizer:
    return tokenizer_from_json(real_json)


@pytest.fixture(scope="session")
def demo() -> Tokenizer:
    return tokenizer_from_json((demo_checkpoint() / "tokenizer.json").read_text())
