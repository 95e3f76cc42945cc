"""Decoding with less memory than the weights need: this engine under its budget, llama.cpp (mmap) in the same group.

    python -m tests.bench.compare_streaming --llama-bench PATH --memory 1GiB FILE.gguf

Both run in turns in a memory control group of that size, which counts the page cache too. This engine's budget for
weights is the group's size less what Python and the KV cache need. Needs Linux and the right to make such groups.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from engine import LoadOptions, configure_environment, load_model, page_cache
from engine.cli.arguments import byte_size
from tests.bench.memory_group import MemoryGroup, memory_group

DECODED = 8
BESIDE_WEIGHTS = 400 << 20
"""Python, its libraries, states, a short KV cache and scratch memory."""


def own_turn(file: Path, budget: int, threads: int) -> float:
    """Tokens per second of plain decoding in this process, from an empty KV cache as llama-bench does it."""
    model = load_model(file, options=LoadOptions(threads=threads, context=64, memory_budget=budget))
    try:
        tokens = np.random.default_rng(0).integers(0, model.info.vocabulary, DECODED + 1).tolist()
        target = model.new_target()
        target.logits(target.forward(tokens[:1]))
        start = time.perf_counter()
        for token in tokens[1:]:
            target.logits(target.forward([token]))
        return DECODED / (time.perf_counter() - start)
    finally:
        model.close()


def _own(group: MemoryGroup, file: Path, budget: int, threads: int) -> float:
    command = [sys.executable, "-m", __spec__.name, file, "--own-turn", budget, "--threads", threads]
    return float(group.run(command).split()[-1])


def _theirs(group: MemoryGroup, file: Path, bench: Path, threads: int) -> float:
    command = [bench, "-m", file, "-t", threads, "-p", 0, "-n", DECODED, "-r", 1, "-o", "json"]
    return float(json.loads(group.run(command))[0]["avg_ts"])


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Compare streaming with llama.cpp's mmap in as much memory.")
    parser.add_argument("file", type=Path, metavar="FILE.gguf")
    parser.add_argument("--llama-bench", type=Path, metavar="PATH")
    parser.add_argument("--memory", type=byte_size, default=1 << 30, metavar="SIZE", help="default: 1GiB")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--turns", type=int, default=2, help="of both (default: 2)")
    parser.add_argument("--own-turn", type=int, metavar="BUDGET", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    configure_environment()
    if arguments.own_turn is not None:
        print(own_turn(arguments.file, arguments.own_turn, arguments.threads))
        return
    budget = arguments.memory - BESIDE_WEIGHTS
    speeds: dict[str, list[float]] = {"draftscope": [], "llama.cpp": []}
    size = arguments.file.stat().st_size
    print(f"{arguments.file.name}, {size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}")
    for _ in range(arguments.turns):
        for name, found in speeds.items():
            page_cache.drop(arguments.file)
            with memory_group(arguments.memory) as group:
                if group is None:
                    sys.exit("No memory control group can be made here, so there is nothing to compare with.")
                if name == "draftscope":
                    found.append(_own(group, arguments.file, budget, arguments.threads))
                elif arguments.llama_bench:
                    found.append(_theirs(group, arguments.file, arguments.llama_bench, arguments.threads))
                print(
                    f"{name:10} {found[-1] if found else 0:8.3f} tokens/s, peak of the group {group.peak / 1e6:.0f} MB"
                )
    own, theirs = (statistics.median(found) if found else 0.0 for found in speeds.values())
    if theirs:
        print(f"ratio {own / theirs:.2f}")


if __name__ == "__main__":
    main()
