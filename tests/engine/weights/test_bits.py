"""The contract of streaming: hidden states, logits and drafts are the same bits at every budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from engine.files.checkpoint import Checkpoint
from engine.kernels.context import ComputeContext
from engine.model.mtp import MtpLayer, MtpSession
from engine.model.target import TargetSession
from engine.model.trunk import Trunk
from engine.weights.store import WeightStore
from tests.engine.weights.test_store import budget_at

TOKENS = [17, 300, 301, 5, 999, 64, 64, 2]


@dataclass(frozen=True)
class Outcome:
    greedy: list[int]
    arrays: list[np.ndarray]


def run(checkpoint: Checkpoint, weights: WeightStore) -> Outcome:
    """A prompt, a verification pass that is partly taken back, some greedy tokens, and drafts for each."""
    tiled = checkpoint.conventions.v_heads == "tiled"
    context = ComputeContext(2)
    trunk = Trunk(checkpoint.config, weights, context, v_heads_tiled=tiled)
    target = TargetSession(trunk, checkpoint.config.vocabulary, 256)
    arrays = [target.forward(TOKENS)]
    target.forward([1, 2, 3, 4])
    target.rollback(len(TOKENS) + 1)
    mtp = None
    if weights.has("mtp.fc.weight"):
        layer = MtpLayer(checkpoint.config, weights, context)
        mtp = MtpSession(layer, checkpoint.config.vocabulary, 256)
    greedy = [7]
    for _ in range(6):
        hidden = target.forward(greedy[-1:])
        logits = target.logits(hidden)
        greedy.append(int(logits[0].argmax()))
        arrays += [hidden, logits]
        for _ in range(2 if mtp else 0):
            hidden = mtp.forward(hidden, greedy[-1:])
            arrays += [hidden, mtp.logits(hidden)]
    return Outcome(greedy, arrays)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_the_same_bits_at_every_budget(
    checkpoint: Checkpoint, open_store: Callable[..., WeightStore], share: float
) -> None:
    expected = run(checkpoint, open_store(checkpoint))
    streamed = run(checkpoint, open_store(checkpoint, budget=budget_at(checkpoint, share)))
    assert streamed.greedy == expected.greedy
    for found, wanted in zip(streamed.arrays, expected.arrays, strict=True):
        np.testing.assert_array_equal(found, wanted)
