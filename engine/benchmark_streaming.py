"""Measurements for `bench --streaming`: decoding while weights come from disk, at several memory budgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import Model, load_model
from engine.demo import resolve
from engine.errors import OptionError
from engine.files.checkpoint import open_checkpoint
from engine.options import LoadOptions
from engine.weights.plan import make_plan
from engine.weights.speed import measure_read_speed

if TYPE_CHECKING:
    from engine.cancel import CancelToken

SHARES = (0.25, 0.5, 0.75)
"""Default budgets, between the smallest that works and everything."""
WARM_UP, DECODED = 2, 8  # tokens before and during a measurement


def measure_streaming(
    path: str | Path,
    budgets: Sequence[int],
    threads: int | None,
    cancel: CancelToken,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """`raw_read_gb_s`, what the disk delivers, and under `streaming` one object a budget.

    `achieved_gb_s` is bytes read per second of decoding; `overlap` is the share of that time in which computing did not
    wait for the disk. Without `budgets`, three are spread over the possible range.
    """
    checkpoint = open_checkpoint(resolve(path))
    plan = make_plan(checkpoint)
    chosen = list(budgets) or [plan.minimum + int(share * (plan.everything - plan.minimum)) for share in SHARES]
    say("reading speed of the disk")
    largest = max(checkpoint.files, key=lambda file: file.stat().st_size)
    speed = measure_read_speed(largest, cancel=cancel)
    results = []
    for budget in chosen:
        if budget < plan.minimum:
            raise OptionError(f"The budget of {budget:,} bytes is too small: this model needs {plan.minimum:,}.")
        say(f"streaming within {budget / (1 << 20):.0f} MiB")
        model = load_model(path, options=LoadOptions(threads=threads, memory_budget=budget), cancel=cancel)
        try:
            results.append({"budget": budget, **_decode(model, cancel)})
        finally:
            model.close()
    return {"raw_read_gb_s": round(speed.bytes_per_s / 1e9, 3), "raw_read_direct": speed.direct, "streaming": results}


def _decode(model: Model, cancel: CancelToken) -> dict[str, float]:
    """Greedy decoding, one token at a time."""
    target = model.new_target()

    def write(count: int, token: int = 0) -> int:
        for _ in range(count):
            token = int(target.logits(target.forward([token], cancel))[0].argmax())
        return token

    token = write(WARM_UP)
    nbytes, waited = model.reads()
    start = time.perf_counter()
    write(DECODED, token)
    seconds = time.perf_counter() - start
    nbytes, waited = model.reads()[0] - nbytes, model.reads()[1] - waited
    return {
        "tok_s": round(DECODED / seconds, 3),
        "achieved_gb_s": round(nbytes / seconds / 1e9, 3),
        "overlap": round(max(0.0, 1 - waited / seconds), 3),
        "bytes_per_token": nbytes // DECODED,
    }
