"""Measures this engine and llama.cpp in turns on the same GGUF file: A/B/A/B, medians and their ratios.

    python -m tests.bench.compare_llama_cpp --llama-bench PATH FILE.gguf
    python -m tests.bench.compare_llama_cpp --llama-server PATH FILE.gguf --prompt "What is the capital of France?"

With `--llama-server` it compares how much faster each of them becomes by drafting with the file's MTP layer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine import LoadOptions, configure_environment, load_model
from tests.bench.llama_server import LlamaServer, own_speed

if TYPE_CHECKING:
    from engine import Model

DECODED = 24

Speeds = dict[str, list[float]]
"""Tokens per second by what was measured, one for each turn."""


def compare(bench: Path, file: Path, threads: int, turns: int, prefill: int) -> dict[str, Speeds]:
    """Speeds of `draftscope` and `llama.cpp` in `turns` turns of both."""
    model = load_model(file, options=LoadOptions(threads=threads, context=prefill + DECODED))
    found: dict[str, Speeds] = {"draftscope": defaultdict(list), "llama.cpp": defaultdict(list)}
    try:
        _own_turn(model, prefill)  # memory that later turns use again
        for _ in range(turns):
            for name, speeds in (
                ("draftscope", _own_turn(model, prefill)),
                ("llama.cpp", _their_turn(bench, file, threads, prefill)),
            ):
                for what, speed in speeds.items():
                    found[name][what].append(speed)
    finally:
        model.close()
    return found


def _own_turn(model: Model, prefill: int) -> dict[str, float]:
    """As llama-bench measures: a prompt of random tokens, then from an empty cache one random token after the other."""
    random = np.random.default_rng(0)
    tokens = random.integers(0, model.info.vocabulary, prefill + DECODED).tolist()
    reader = model.new_target()
    start = time.perf_counter()
    reader.logits(reader.forward(tokens[:prefill])[-1:])
    reading = prefill / (time.perf_counter() - start)
    writer = model.new_target()
    writer.logits(writer.forward(tokens[:1]))
    start = time.perf_counter()
    for token in tokens[prefill:]:
        writer.logits(writer.forward([token]))
    return {"prefill": reading, "decode": DECODED / (time.perf_counter() - start)}


def _their_turn(bench: Path, file: Path, threads: int, prefill: int) -> dict[str, float]:
    command = [bench, "-m", file, "-t", threads, "-p", prefill, "-n", DECODED, "-r", 1, "-o", "json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return {"prefill" if run["n_prompt"] else "decode": run["avg_ts"] for run in json.loads(done.stdout)}


def compare_drafting(
    server: Path, file: Path, prompts: list[str], threads: int, turns: int, drafts: int
) -> dict[str, Speeds]:
    """Tokens per second of greedy replies, `plain` and with the MTP layer's `drafts`, all prompts in each turn."""
    found: dict[str, Speeds] = {"draftscope": defaultdict(list), "llama.cpp": defaultdict(list)}
    model = load_model(file, options=LoadOptions(threads=threads))
    try:
        with LlamaServer(server, file, threads) as plain, LlamaServer(server, file, threads, drafts) as drafting:
            for turn in range(turns + 1):
                for what, count, theirs in (("plain", 0, plain), ("drafts", drafts, drafting)):
                    for prompt in prompts:
                        own, tokens = own_speed(model, prompt, count)
                        other = theirs.speed(tokens)
                        if turn:  # the first one pays for memory
                            found["draftscope"][what].append(own)
                            found["llama.cpp"][what].append(other)
    finally:
        model.close()
    return found


def lines(found: dict[str, Speeds]) -> Iterator[str]:
    """Medians, their ratio, and between what the single turns lay."""
    for what in found["draftscope"]:
        own, theirs = found["draftscope"][what], found["llama.cpp"][what]
        middle, other = statistics.median(own), statistics.median(theirs)
        yield (
            f"{what:8} draftscope {middle:8.2f} ({min(own):.2f}…{max(own):.2f})  "
            f"llama.cpp {other:8.2f} ({min(theirs):.2f}…{max(theirs):.2f})  ratio {middle / other:.2f}"
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Compare with llama.cpp on the same file.")
    parser.add_argument("file", type=Path, metavar="FILE.gguf")
    parser.add_argument("--llama-bench", type=Path, metavar="PATH")
    parser.add_argument("--llama-server", type=Path, metavar="PATH")
    parser.add_argument("--prompt", action="append", help="for --llama-server; may be repeated")
    parser.add_argument("--drafts", type=int, default=3, help="for --llama-server (default: 3)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--turns", type=int, default=3, help="of both (default: 3)")
    parser.add_argument("--prefill", type=int, default=512, metavar="N", help="tokens of the prompt (default: 512)")
    arguments = parser.parse_args()
    configure_environment()
    print(f"{arguments.file.name}, load {os.getloadavg()[0]:.1f}")
    for threads in arguments.threads:
        if arguments.llama_bench:
            found = compare(arguments.llama_bench, arguments.file, threads, arguments.turns, arguments.prefill)
            for line in lines(found):
                print(f"{threads} threads  {line}", flush=True)
        if arguments.llama_server:
            prompts = arguments.prompt or ["What is the capital of France?", "Count from 1 to 20."]
            found = compare_drafting(
                arguments.llama_server, arguments.file, prompts, threads, arguments.turns, arguments.drafts
            )
            for line in lines(found):
                print(f"{threads} threads  {line}")
            for name, speeds in found.items():
                gain = statistics.median(speeds["drafts"]) / statistics.median(speeds["plain"])
                print(f"{threads} threads  {name}: drafts make it {gain:.2f} × as fast", flush=True)


if __name__ == "__main__":
    main()
