"""A real hub client against a small hub on this computer, with no token of the person who runs the tests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session

from tests.app.library.hub.server import Hub, Repo, running

WEIGHTS = random.Random(1).randbytes(300_000)
TOWER = random.Random(2).randbytes(20_000)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """`someone/tiny-GGUF` with two formats and a tower, `someone/tiny` in shards, `someone/secret` behind a gate."""
    repos = {
        "someone/tiny-GGUF": Repo(
            {
                "README.md": b"hello",
                "tiny-Q4_K_M.gguf": WEIGHTS,
                "tiny-Q8_0.gguf": WEIGHTS * 2,
                "mmproj-F16.gguf": TOWER,
            }
        ),
        "someone/tiny": Repo(
            {
                "config.json": b'{"model_type": "qwen3_5"}',
                "tokenizer.json": b"{}",
                "model-00001-of-00002.safetensors": WEIGHTS,
                "model-00002-of-00002.safetensors": TOWER,
                "mtp.safetensors": b"sidecar",
                "pytorch_model.bin": b"old",
            }
        ),
        "someone/secret": Repo({"secret-Q4_0.gguf": WEIGHTS}, gated=True),
    }
    with running(repos) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "no-token"))
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        yield hub
        close_session()
