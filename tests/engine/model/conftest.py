"""The reference checkpoints, opened once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.kernels.context import ComputeContext
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.model.mtp import MtpLayer
from engine.model.target import TargetSession
from engine.model.trunk import Trunk
from engine.weights.store import WeightStore, open_weights

DATA = Path(__file__).parents[2] / "data"


@dataclass(frozen=True)
class Loaded:
    checkpoint: Checkpoint
    weights: WeightStore
    context: ComputeContext
    trunk: Trunk
    mtp: MtpLayer

    def session(self, kv: KvType = KV_TYPES["f32"]) -> TargetSession:
        return TargetSession(self.trunk, self.checkpoint.config.vocabulary, 4096, kv)


def load(path: Path, threads: int = 1, float_activations: bool = False) -> Loaded:
    checkpoint = open_checkpoint(path)
    weights = open_weights(checkpoint)
    context = ComputeContext(threads, float_activations=float_activations)
    tiled = checkpoint.conventions.v_heads == "tiled"
    trunk = Trunk(checkpoint.config, weights, context, v_heads_tiled=tiled)
    return Loaded(checkpoint, weights, context, trunk, MtpLayer(checkpoint.config, weights, context))


@pytest.fixture(scope="session")
def loaded() -> Iterator[Callable[..., Loaded]]:
    """Get a reference checkpoint by name and number of threads."""
    models = {(name, threads): load(DATA / name, threads) for name in ("tiny-dense", "tiny-moe") for threads in (1, 2)}
    yield lambda name, threads=1: models[name, threads]
    for model in models.values():
        model.weights.close()


def goldens(name: str, part: str) -> dict[str, np.ndarray]:
    with np.load(DATA / name / f"goldens-{part}.npz") as archive:
        return dict(archive)
