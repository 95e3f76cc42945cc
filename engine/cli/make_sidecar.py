"""`make-sidecar`: an MTP layer with a draft head of the tokens that one's own texts use."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from engine.cli.console import Console, interruptible
from engine.cli.plan import size

if TYPE_CHECKING:
    from engine.export.sidecar import MadeSidecar


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "make-sidecar",
        help="make drafts cheaper: an MTP layer with a smaller head",
        description="Write the MTP layer of a model with a draft head that knows only some tokens: those that your own"
        " texts use most, and all control tokens, bytes and digits. The reply stays the same; drafts cost less.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder, .safetensors or .gguf file, or demo")
    parser.add_argument("out", metavar="OUT", help="the .safetensors or .gguf file to write")
    parser.add_argument("--vocab", type=int, default=32768, metavar="N", help="tokens of the head (default: 32768)")
    parser.add_argument("--text", nargs="+", default=[], metavar="FILE", help="texts whose tokens are counted")
    parser.add_argument("--trace", nargs="+", default=[], metavar="FILE", help="saved runs whose tokens are counted")
    parser.add_argument("--type", default="BF16", metavar="TYPE", help="BF16, F16, F32, Q8_0 or Q4_0 (default: BF16)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it is there")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    from engine.kernels.cpu import configure_environment

    configure_environment()
    from engine.export.sidecar import make_sidecar

    output = Console(arguments.json)
    with interruptible() as cancel:
        made = make_sidecar(
            arguments.model,
            arguments.out,
            arguments.vocab,
            texts=arguments.text,
            traces=arguments.trace,
            wanted=arguments.type,
            overwrite=arguments.overwrite,
            progress=output.bar("writing"),
            cancel=cancel,
        )
    output.clear()
    print(json.dumps(made.to_dict()) if arguments.json else "\n".join(_lines(made)))
    return 0


def _lines(made: MadeSidecar) -> list[str]:
    covered = (
        "too little text to test the choice on"
        if made.coverage is None
        else f"{100 * made.coverage:.1f} % of {made.held_out:,} tokens that were not counted are covered"
    )
    return [
        f"{made.path}: {size(made.nbytes)}",
        f"head of {made.rows:,} of {made.vocabulary:,} tokens, {made.always:,} of them always kept",
        f"{made.counted:,} tokens read; {covered}",
    ]
