"""Checkpoints to stream from, and a disk that fails on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.weights.store import ReadOptions, WeightStore, open_weights
from tests.engine.weights.faulty import FaultyFiles

MODELS = ("tiny-dense", "tiny-moe", "tiny-dense/gguf/tiny-dense-Q4_K_M.gguf", "tiny-moe/gguf/tiny-moe-Q4_K_M.gguf")


@pytest.fixture(params=MODELS)
def checkpoint(request: pytest.FixtureRequest, data: Path) -> Checkpoint:
    """Dense and mixture of experts, safetensors and GGUF."""
    return open_checkpoint(data / request.param)


@pytest.fixture
def dense(data: Path) -> Checkpoint:
    return open_checkpoint(data / "tiny-dense")


@pytest.fixture
def moe(data: Path) -> Checkpoint:
    return open_checkpoint(data / "tiny-moe")


@pytest.fixture
def files() -> Iterator[FaultyFiles]:
    faulty = FaultyFiles()
    yield faulty
    faulty.gate.set()


@pytest.fixture
def open_store(files: FaultyFiles) -> Iterator[Callable[..., WeightStore]]:
    """`open_weights` on the faulty disk; stores are closed at the end, and all of their files must be."""
    stores: list[WeightStore] = []

    def opened(
        checkpoint: Checkpoint, *args: Any, threads: int | None = 3, on_stall: Any = None, **settings: Any
    ) -> WeightStore:
        reading = ReadOptions(files, threads, on_stall)
        stores.append(open_weights(checkpoint, *args, reading=reading, **settings))
        return stores[-1]

    yield opened
    files.gate.set()
    for store in stores:
        store.close()
    assert files.opened == files.closed
