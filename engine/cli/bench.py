"""`bench`: how fast a model reads, writes, verifies and drafts on this machine."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import add_model, byte_size, open_model
from engine.cli.console import Console, interruptible
from engine.errors import OptionError

if TYPE_CHECKING:
    from engine.decoding.records import LoadProgress


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="how fast a model is here",
        description="Measure prefill, decoding, verification of 1 to 15 rows and a draft step; figures are medians.",
    )
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="measurements per figure (default: 5)")
    parser.add_argument(
        "--compile", action="store_true", help="also measure compiling with an empty kernel cache (minutes)"
    )
    parser.add_argument("--drafters", action="store_true", help="also compare the drafters on chat, copying and prose")
    parser.add_argument("--streaming", action="store_true", help="also decode with weights coming from disk")
    parser.add_argument(
        "--budget", type=byte_size, action="append", default=[], metavar="SIZE", help="for --streaming; may be repeated"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    if not 1 <= arguments.repeats <= 1000:
        raise OptionError(f"repeats is {arguments.repeats}, but it must be 1…1000.")
    console, kernels = Console(), _KernelClock()
    with interruptible() as cancel:

        def tell(record: LoadProgress) -> None:
            kernels.tick(record)
            console.progress(record)

        model = open_model(arguments, tell, cancel)
        from engine.benchmark import compile_times, measure

        try:
            result = measure(model, arguments.repeats, cancel, console.say)
            if arguments.drafters:
                from engine.benchmark_drafters import measure_drafters

                result |= measure_drafters(model, arguments.repeats, cancel, console.say)
        finally:
            model.close()
        result["compile_s"] = kernels.figures()
        if arguments.compile:
            console.say("compiling with an empty kernel cache")
            result["compile_s"] = compile_times(arguments.model)
        if arguments.streaming:
            from engine.benchmark_streaming import measure_streaming

            result |= measure_streaming(arguments.model, arguments.budget, arguments.threads, cancel, console.say)
    print(json.dumps(result) if arguments.json else "\n".join(_lines(result)))
    return 0


class _KernelClock:
    """How long kernels took while loading, and whether they came from the cache or had to be compiled."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._seconds = 0.0
        self._cached = 0

    def tick(self, record: LoadProgress) -> None:
        """Hear of the progress of loading."""
        if record.stage != "kernels":
            return
        if self._start is None:
            self._start, self._cached = time.perf_counter(), _cached_kernels()
        self._seconds = time.perf_counter() - self._start

    def figures(self) -> dict[str, float | None]:
        """Seconds by the state that the cache was in."""
        seconds = round(self._seconds, 3)
        return {"cold": seconds, "warm": None} if _cached_kernels() > self._cached else {"cold": None, "warm": seconds}


def _cached_kernels() -> int:
    return sum(1 for _ in Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbc"))


def _lines(result: dict[str, Any]) -> list[str]:
    verify = result["verify_ms"]
    one = verify["1"]
    drafting = result["draft_step_ms"]
    share = f"{100 * result['bandwidth_share']:.0f} % of what memory gives"
    return [
        *(f"prefill {count:>4} tokens  {speed:>10.1f} tokens/s" for count, speed in result["prefill_tok_s"].items()),
        f"decode               {result['decode_tok_s']:>10.1f} tokens/s",
        *(f"verify {rows:>2} rows        {ms:>10.2f} ms  {ms / one:5.2f} ×" for rows, ms in verify.items()),
        f"draft step           {'no MTP layer' if drafting is None else f'{drafting:>10.2f} ms'}",
        *(f"{name:<20} {ms:>10.2f} ms a token and layer" for name, ms in result["parts_ms"].items()),
        f"weights read         {result['read_gb_s']:>10.2f} GB/s, {share}",
        f"threads              {result['threads']:>10}",
        *_drafter_lines(result),
        *_streaming_lines(result),
    ]


def _drafter_lines(result: dict[str, Any]) -> list[str]:
    """One line for each task and drafter."""
    lines = []
    for task, drafters in result.get("drafters", {}).items():
        for name, own in drafters.items():
            shares = " ".join(f"{100 * share:.0f}" for share in own["acceptance"])
            accepted = f", accepted by position {shares} %" if shares else ""
            figures = f"{own['tokens_per_round']:5.2f} tokens a round, {own['draft_passes']:>4} draft passes"
            lines.append(
                f"{task:<6} {name:<10} {figures}, {own['tok_s']:>8.1f} tokens/s, {own['speed_up']:4.2f} ×{accepted}"
            )
    return lines


def _streaming_lines(result: dict[str, Any]) -> list[str]:
    if "streaming" not in result:
        return []
    direct = "past the page cache" if result["raw_read_direct"] else "through the page cache"
    return [
        f"disk                 {result['raw_read_gb_s']:>10.2f} GB/s, {result['read_depth']} reads at once, {direct}",
        f"beside busy cores    {result['raw_read_busy_gb_s']:>10.2f} GB/s",
        f"reading alone        {result['reading_alone_gb_s']:>10.2f} GB/s,"
        f" {100 * result['reading_alone_share']:.0f} % of the disk's",
        *(line for run in result["streaming"] for line in _budget_lines(run)),
        "peer                 none measured: llama.cpp is no part of this program",
    ]


def _budget_lines(run: dict[str, Any]) -> list[str]:
    drafts = "no MTP layer"
    if run["draft_tok_s"] is not None:
        drafts = f"{run['draft_tok_s']:.2f} with drafts ({run['draft_speedup']:.2f} ×)"
    overlap = (
        "nothing read"
        if run["overlap"] is None
        else (
            f"{run['achieved_gb_s']:.2f} of {run['raw_gb_s']:.2f} GB/s, overlap {100 * run['overlap']:.0f} %,"
            f" bound by {run['bound_by']}"
        )
    )
    return [
        f"budget {run['budget'] / (1 << 20):>8.0f} MiB  {run['tok_s']:>10.2f} tokens/s, {drafts}",
        f"{'':21}{overlap}",
    ]
