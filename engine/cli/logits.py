"""`logits`: what the model says after each of some tokens, as arrays in an .npz file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import add_model, check_output, open_model, read_text_file, token_ids
from engine.cli.console import Console, interruptible
from engine.cli.prompt import complete, images_of, parse_messages
from engine.errors import OptionError
from engine.options import GenerateOptions

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine import Message, Picture


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "logits",
        help="logits and hidden states of given tokens",
        description="Write logits [T, V] and hidden [T, H] (float32) of given tokens into an .npz file; with --mtp also"
        " mtp_logits, where row i pairs hidden state i with token i + 1 and the last row with the greedy next token.",
    )
    add_model(parser)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--tokens", type=token_ids, metavar="IDS", help="token ids, e.g. 1,2,3")
    choice.add_argument("--messages", metavar="FILE", help='a conversation: [{"role": "user", "content": "…"}, …]')
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="a picture; may be repeated: with --tokens they fill the runs of placeholder ids in order, with --messages"
        " they go with the last message",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the .npz file to write")
    parser.add_argument("--mtp", action="store_true", help="also the MTP layer's logits")
    parser.add_argument("--rows-per-pass", type=int, metavar="T", help="tokens read at a time")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    if arguments.rows_per_pass is not None and arguments.rows_per_pass < 1:
        raise OptionError(f"rows per pass is {arguments.rows_per_pass}, but it must be 1 or more.")
    if arguments.messages is None and not arguments.tokens:
        raise OptionError("There are no tokens: give at least one id.")
    check_output(arguments.out, "--out")
    messages, images = given(arguments)
    console = Console()
    with interruptible() as cancel:
        model = open_model(arguments, console.progress, cancel)
        try:
            arrays = model.logits(
                model.new_session().prompt_tokens(messages, GenerateOptions()) if messages else arguments.tokens,
                images=images,
                rows_per_pass=arguments.rows_per_pass,
                mtp=arguments.mtp,
                cancel=cancel,
            )
        finally:
            console.clear()
            model.close()
    save(Path(arguments.out), arrays)
    return 0


def given(arguments: argparse.Namespace) -> tuple[tuple[Message, ...], tuple[Picture, ...]]:
    """The conversation, if there is one, and the pictures, in it or among the tokens."""
    if arguments.messages is None:
        return (), images_of(arguments)
    messages = complete(parse_messages(read_text_file(arguments.messages), arguments.messages), arguments)
    return messages, tuple(image for message in messages for image in message.images)


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
