"""`logits`: what the model says after each of some tokens, as arrays in an .npz file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import add_model, open_model, token_ids
from engine.cli.console import Console, interruptible
from engine.errors import OptionError

if TYPE_CHECKING:
    import numpy.typing as npt


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "logits",
        help="logits and hidden states of given tokens",
        description="Write logits [T, V] and hidden [T, H] (float32) of given tokens into an .npz file; with --mtp also"
        " mtp_logits, where row i pairs hidden state i with token i + 1 and the last row with the greedy next token.",
    )
    add_model(parser)
    parser.add_argument("--tokens", type=token_ids, required=True, metavar="IDS", help="token ids, e.g. 1,2,3")
    parser.add_argument("--out", required=True, metavar="FILE", help="the .npz file to write")
    parser.add_argument("--mtp", action="store_true", help="also the MTP layer's logits")
    parser.add_argument("--rows-per-pass", type=int, metavar="T", help="tokens read at a time")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    if arguments.rows_per_pass is not None and arguments.rows_per_pass < 1:
        raise OptionError(f"rows per pass is {arguments.rows_per_pass}, but it must be 1 or more.")
    if not arguments.tokens:
        raise OptionError("There are no tokens: give at least one id.")
    console = Console()
    with interruptible() as cancel:
        model = open_model(arguments, console.progress, cancel)
        try:
            arrays = model.logits(
                arguments.tokens, rows_per_pass=arguments.rows_per_pass, mtp=arguments.mtp, cancel=cancel
            )
        finally:
            console.clear()
            model.close()
    save(Path(arguments.out), arrays)
    return 0


def save(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write an .npz under its name only when it is whole; OptionError if it cannot be written."""
    import numpy as np

    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OptionError(f"{path} cannot be written: {error.strerror}.") from None
