"""Measurements for `bench`: medians of repeated runs on token ids that need no tokenizer."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.benchmark_parts import measure_parts
from engine.options import MAX_DRAFT_TOKENS

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.loaded_model import Model
    from engine.model.target import TargetSession

PREFILL = (128, 512)
VERIFY_ROWS = range(1, MAX_DRAFT_TOKENS + 2)
DECODED = 16  # tokens of one decoding measurement
CONTEXT = 128  # tokens read before decoding, verifying and drafting are measured


def measure(
    model: Model, repeats: int, cancel: CancelToken, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """All figures of `bench --json` but compile times.

    `read_gb_s` is weight bytes of one decoded token times tokens per second; `bandwidth_share` is that over what plain
    summing reads from memory with as many threads.
    """
    from engine.files.checkpoint import open_checkpoint

    say("prefill")
    prefill = {str(n): _prefill_speed(model, n, repeats, cancel) for n in PREFILL if n < model.info.context}
    target = model.new_target()
    target.forward(_tokens(model, CONTEXT), cancel)
    say("decoding and verification")
    verify = {str(rows): _verify_ms(model, target, rows, repeats, cancel) for rows in VERIFY_ROWS}
    decode = _decode_speed(target, repeats, cancel)
    say("drafting")
    draft = _draft_ms(model, target, repeats)
    say("parts")
    parts = measure_parts(open_checkpoint(model.info.path).config, model.info.threads, repeats)
    read = decode * decode_bytes(model) / 1e9
    return {
        "prefill_tok_s": prefill,
        "decode_tok_s": round(decode, 2),
        "verify_ms": verify,
        "draft_step_ms": draft,
        "parts_ms": parts,
        "read_gb_s": round(read, 3),
        "bandwidth_share": round(read / memory_bandwidth(model.info.threads), 3),
        "threads": model.info.threads,
        "kv_cache": model.info.kv_cache,
        "model": model.info.name,
        "formats": list(model.info.formats),
    }


def _tokens(model: Model, count: int) -> list[int]:
    """Ids spread over the vocabulary; the same ones every time."""
    random = np.random.default_rng(0)
    return [int(token) for token in random.integers(0, model.info.vocabulary, count)]


def _median_s(action: Callable[[], object], repeats: int) -> float:
    action()  # the first run pays for memory that later ones reuse
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _prefill_speed(model: Model, count: int, repeats: int, cancel: CancelToken) -> float:
    """Tokens per second of reading a new prompt, without logits."""
    tokens = _tokens(model, count)
    seconds = _median_s(lambda: model.new_target().forward(tokens, cancel), repeats)
    return round(count / seconds, 1)


def _verify_ms(model: Model, target: TargetSession, rows: int, repeats: int, cancel: CancelToken) -> float:
    """Milliseconds of one pass over `rows` tokens with all logits, and of taking it back."""
    tokens, position = _tokens(model, rows), target.position

    def verify() -> None:
        target.logits(target.forward(tokens, cancel))
        target.rollback(position)

    return round(1000 * _median_s(verify, repeats), 3)


def _decode_speed(target: TargetSession, repeats: int, cancel: CancelToken) -> float:
    """Tokens per second, one at a time, greedy."""

    def decode() -> None:
        own, token = target.clone(), 0
        for _ in range(DECODED):
            token = int(own.logits(own.forward([token], cancel))[0].argmax())

    return DECODED / _median_s(decode, repeats)


def _draft_ms(model: Model, target: TargetSession, repeats: int) -> float | None:
    """Milliseconds of one draft step with its head; None without an MTP layer."""
    mtp = model.new_mtp()
    if mtp is None:
        return None
    hidden = target.forward([0])
    target.rollback(target.position - 1)
    mtp.forward(np.repeat(hidden, CONTEXT, axis=0), _tokens(model, CONTEXT))
    length = mtp.position

    def step() -> None:
        mtp.logits(mtp.forward(hidden, [0]))
        mtp.truncate(length)

    return round(1000 * _median_s(step, repeats), 3)


def decode_bytes(model: Model) -> int:
    """Weight bytes that one token reads: all but the MTP layer and, of the embedding table, all rows but one."""
    from engine.files.checkpoint import open_checkpoint
    from engine.files.report import unit_sizes

    checkpoint = open_checkpoint(model.info.path)
    config = checkpoint.config
    share = config.experts_per_token / config.experts if config.experts else 0.0
    units = unit_sizes(checkpoint.tensors.values(), config)
    return sum(unit.nbytes + int(unit.expert_bytes * share) for unit in units if unit.name not in ("embedding", "mtp"))


def memory_bandwidth(threads: int, nbytes: int = 128 << 20) -> float:
    """GB/s at which `threads` threads together read memory that no cache holds."""
    arrays = [np.ones(nbytes // 8) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = _median_s(lambda: list(pool.map(np.max, arrays)), 3)
    return threads * nbytes / seconds / 1e9


def compile_times(path: str) -> dict[str, float]:
    """Seconds from the start of a process until the model is ready, with an empty kernel cache and with a full one."""
    code = "import sys; from engine import configure_environment as c, load_model as m; c(); m(sys.argv[1]).close()"
    with tempfile.TemporaryDirectory(prefix="draftscope-kernels-") as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        times = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code, path], env=environment, check=True)
            times.append(time.perf_counter() - start)
    return {"cold": round(times[0], 2), "warm": round(times[1], 2)}
