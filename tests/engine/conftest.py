"""Models that many tests use, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import engine

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def demo() -> Iterator[engine.Model]:
    """The demo checkpoint with its own MTP layer."""
    model = engine.load_model("demo", options=engine.LoadOptions(threads=1))
    yield model
    model.close()


@pytest.fixture(scope="session")
def demo_with_sidecar() -> Iterator[engine.Model]:
    """The demo checkpoint with the sidecar's trimmed draft head."""
    model = engine.load_model("demo", sidecar=engine.demo_sidecar_path(), options=engine.LoadOptions(threads=1))
    yield model
    model.close()


@pytest.fixture(scope="session")
def tiny_dense() -> Iterator[engine.Model]:
    """The dense reference checkpoint."""
    model = engine.load_model(DATA / "tiny-dense", options=engine.LoadOptions(threads=1))
    yield model
    model.close()
