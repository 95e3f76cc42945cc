"""Measurements for `bench --streaming`: decoding while weights come from disk, at several memory budgets."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from engine import page_cache
from engine.decoding.records import Failed, Round
from engine.demo import resolve
from engine.errors import EngineError, OptionError, ReadError
from engine.files.checkpoint import open_checkpoint
from engine.kernels.cpu import physical_cores
from engine.options import DraftOptions, GenerateOptions, LoadOptions
from engine.planning import open_planner
from engine.prompt import Message
from engine.weights.speed import ReadSpeed, measure_read_speed
from engine.weights.store import open_weights

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.loaded_model import Model

SHARES = (1.0, 0.75, 0.5, 0.25)
"""Default budgets, as shares of all weights."""
WARM_UP, MEASURED = 2, 24
"""Rounds before and in a measurement."""
PATIENCE_S = 20.0
"""A measurement ends after this time with the rounds that it has, if they are at least a few."""
FEW = 3
DRAFTS = 3
WALKS = 3
"""Passes of reading alone."""
RAW_S = 1.5
"""Seconds of reading that tell how fast the disk is, before and after each budget."""
PROMPT = "Tell me a story about a fox and a lamp."


@dataclass(frozen=True, slots=True)
class Pace:
    """Some rounds of decoding."""

    rounds: int
    tokens: int
    seconds: float
    round_s: float
    """The median round, which a busy neighbour disturbs less than the sum."""
    wait_s: float
    bytes_read: int

    @property
    def tok_s(self) -> float:
        return self.tokens / self.rounds / self.round_s if self.round_s > 0 else 0.0


def measure_streaming(
    path: str | Path,
    budgets: Sequence[int],
    threads: int | None,
    cancel: CancelToken,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """`raw_read_gb_s`: what the disk delivers; `raw_read_busy_gb_s`: the same while all cores compute on what is in
    their caches (where that is less, reading takes processor time, as in virtual machines); under `streaming`
    one object a budget.

    Per budget: `achieved_gb_s` is bytes read per second of decoding without drafts; `overlap` is max(compute, read) /
    elapsed, where compute is the time in which nobody waited for the disk, and read is what the disk takes for the same
    bytes, measured before and after the run; None where nothing is read. `tok_s` is without drafts, `draft_tok_s` with.
    """
    from engine.loading import load_model

    planner = open_planner(path)
    chosen = [_checked(budget, planner.minimum) for budget in budgets] or [
        max(planner.minimum, int(share * planner.everything)) for share in SHARES
    ]
    files = open_checkpoint(resolve(path)).files
    say("reading speed of the disk")
    disk = _Disk(files, cancel)
    say("loading")
    model = load_model(path, options=LoadOptions(threads=threads), cancel=cancel)
    try:
        results = []
        for budget in chosen:
            say(f"decoding within {budget / (1 << 20):.0f} MiB")
            model.set_budget(budget if budget < planner.everything else None, cancel=cancel)
            results.append({"budget": budget, "share": round(budget / planner.everything, 3)})
            results[-1] |= _figures(model, disk, cancel)
    finally:
        model.close()
    say("reading alone")
    alone, share = _reading_alone(path, max(planner.minimum, planner.everything // 2), disk, cancel)
    raw = mean(disk.speeds)
    say("reading beside busy cores")
    with _busy_cores():
        beside = disk.measure()
    return {
        "raw_read_busy_gb_s": round(beside / 1e9, 3),
        "reading_alone_gb_s": round(alone / 1e9, 3),
        "reading_alone_share": round(share, 3),
        "raw_read_gb_s": round(raw / 1e9, 3),
        "raw_read_direct": disk.first.direct,
        "read_depth": disk.first.depth,
        "cached_share": disk.cached_share(),
        "streaming": results,
    }


def _checked(budget: int, minimum: int) -> int:
    if budget < minimum:
        raise OptionError(f"The budget of {budget:,} bytes is too small: this model needs {minimum:,}.")
    return budget


class _Disk:
    """The raw speed of the largest file, again and again: the disks of virtual machines have moods."""

    def __init__(self, files: Iterable[Path], cancel: CancelToken) -> None:
        self._files = sorted(files, key=lambda file: file.stat().st_size)
        self._cancel = cancel
        self.drop()
        self.first: ReadSpeed = measure_read_speed(self._files[-1], seconds=RAW_S, most_bytes=8 << 30, cancel=cancel)
        self.speeds: list[float] = [self.first.bytes_per_s]

    def drop(self) -> None:
        """Have the system forget the files."""
        for file in self._files:
            page_cache.drop(file)

    def measure(self) -> float:
        """Bytes per second now, with the request size and depth of the first measurement."""
        self.drop()
        depths = (self.first.depth,)
        speed = measure_read_speed(
            self._files[-1], seconds=RAW_S, most_bytes=8 << 30, depths=depths, cancel=self._cancel
        )
        self.speeds.append(speed.bytes_per_s)
        return speed.bytes_per_s

    def cached_share(self) -> float | None:
        """Share of the files that the page cache holds now: near 0 after honest reads."""
        shares = [page_cache.cached_share(file) for file in self._files]
        known = [share for share in shares if share is not None]
        return round(max(known), 4) if known else None


def _reading_alone(path: str | Path, budget: int, disk: _Disk, cancel: CancelToken) -> tuple[float, float]:
    """What streaming reaches where nothing is computed, so that reading is the bottleneck: bytes per second, and share
    of what the disk gave just before and after; medians."""
    store = open_weights(open_checkpoint(resolve(path)), budget=budget, split_heads=True, cancel=cancel)
    speeds, shares = [], []
    try:
        for _ in range(WALKS):
            before = disk.measure()
            counted, start = store.statistics(), time.perf_counter()
            for unit in store.units:
                store.acquire(unit.name, cancel)
                store.release(unit.name)
            seconds = time.perf_counter() - start
            speeds.append(store.statistics().since(counted).bytes_read / seconds)
            shares.append(speeds[-1] / mean((before, disk.measure())))
    finally:
        store.close()
    return median(speeds), median(shares)


@contextmanager
def _busy_cores() -> Iterator[None]:
    """Every core computes on what stays in its cache, without the interpreter's lock."""
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            hashlib.sha256(bytes(256 * 1024))

    threads = [threading.Thread(target=compute, daemon=True) for _ in range(physical_cores())]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _figures(model: Model, disk: _Disk, cancel: CancelToken) -> dict[str, Any]:
    """All figures of the budget that the model has now."""
    before = disk.measure()
    plain = _decode(model, "none", cancel)
    raw = mean((before, disk.measure()))
    drafted = _decode(model, "mtp", cancel) if model.info.mtp != "none" else None
    compute_s, read_s = plain.seconds - plain.wait_s, plain.bytes_read / raw
    return {
        "tok_s": round(plain.tok_s, 3),
        "draft_tok_s": None if drafted is None else round(drafted.tok_s, 3),
        "draft_speedup": None if drafted is None else round(drafted.tok_s / plain.tok_s, 3),
        "tokens_per_round": None if drafted is None else round(drafted.tokens / drafted.rounds, 3),
        "raw_gb_s": round(raw / 1e9, 3),
        "achieved_gb_s": round(plain.bytes_read / plain.seconds / 1e9, 3),
        "overlap": round(max(compute_s, read_s) / plain.seconds, 3) if plain.bytes_read else None,
        "bound_by": "disk" if read_s > compute_s else "computing",
        "waited": round(plain.wait_s / plain.seconds, 3),
        "bytes_per_round": plain.bytes_read // plain.rounds,
        "memory_bytes": model.statistics().memory_bytes,
    }


def _decode(model: Model, drafter: str, cancel: CancelToken) -> Pace:
    """Some rounds of a greedy reply."""
    draft = DraftOptions("mtp", DRAFTS) if drafter == "mtp" else DraftOptions("none")
    options = GenerateOptions(draft=draft, max_new_tokens=(WARM_UP + MEASURED + 1) * (DRAFTS + 1), ignore_eos=True)
    session = model.new_session()
    try:
        tokens = session.prompt_tokens([Message("user", PROMPT)], options)
    except EngineError:  # a checkpoint without a tokenizer decodes just as fast
        tokens = [i * 997 % model.info.vocabulary for i in range(16)]
    rounds: list[Round] = []
    records = session.complete(tokens, options, cancel)
    start = time.perf_counter()
    for record in records:
        if isinstance(record, Failed):
            raise ReadError(record.message)
        if isinstance(record, Round):
            rounds.append(record)
        late = time.perf_counter() - start > PATIENCE_S and len(rounds) > WARM_UP + FEW
        if late or len(rounds) > WARM_UP + MEASURED:
            break
    records.close()  # type: ignore[attr-defined]
    cancel.check()
    measured = rounds[WARM_UP + 1 :]  # round 0 is the prompt's
    return Pace(
        len(measured),
        sum(len(record.committed) for record in measured),
        sum(record.draft_s + record.verify_s for record in measured),
        median(record.draft_s + record.verify_s for record in measured),
        sum(record.disk_wait_s for record in measured),
        sum(record.bytes_read for record in measured),
    )
