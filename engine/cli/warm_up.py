"""`warm-up`: compile the kernels for this processor ahead of time, as installers do."""

from __future__ import annotations

import argparse
import os
import time

COMMON = ("BF16", "F32", "Q8_0", "Q4_K", "Q6_K", "Q5_K", "F16", "Q4_0", "F8_E4M3")
"""What most checkpoints are made of, most frequent first."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "warm-up",
        help="compile the kernels for this processor",
        description="Compile the kernels for this processor ahead of time, so that the first model opens at once. "
        "NUMBA_CACHE_DIR names another folder to keep them in.",
    )
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help=f"weight formats, as Q4_K; without any: {', '.join(COMMON)}"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 once all are compiled, or read from where they are kept."""
    from engine.errors import OptionError
    from engine.kernels.context import ComputeContext
    from engine.kernels.formats import FORMATS
    from engine.kernels.warm_up import warm_up

    formats = [name.upper() for name in arguments.formats] or COMMON
    if unknown := [name for name in formats if name not in FORMATS]:
        raise OptionError(f"There is no weight format {', '.join(unknown)}; known are {', '.join(FORMATS)}.")
    began, done = time.monotonic(), 0

    def count(number: int, _total: int, _name: str) -> None:
        nonlocal done
        done = number

    warm_up(ComputeContext(1), formats, count, pictures=True)
    print(f"{done} kernels are ready in {os.environ['NUMBA_CACHE_DIR']} after {time.monotonic() - began:.0f} s.")
    return 0
