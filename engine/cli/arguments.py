"""Options that several commands share, and the forms that their values take."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from engine.demo import DEMO, demo_sidecar_path, resolve
from engine.errors import CheckpointError, OptionError
from engine.options import KvCache, LoadOptions, MemoryBudget

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.decoding.records import LoadProgress
    from engine.loaded_model import Model

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", re.IGNORECASE)


def byte_size(text: str) -> int:
    """A number of bytes: `2GiB`, `500 MB`, `1073741824`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it like 2GiB or 500MB")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def memory_budget(text: str) -> MemoryBudget:
    """A size, `auto`, or `everything`, which is None."""
    word = text.strip().lower()
    if word == "everything":
        return None
    if word == "auto":
        return "auto"
    try:
        nbytes = byte_size(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no memory budget; write a size like 2GiB, or auto, or everything"
        ) from None
    if nbytes <= 0:
        raise argparse.ArgumentTypeError("a memory budget must be more than nothing; write it like 2GiB")
    return nbytes


def token_ids(text: str) -> list[int]:
    """Token ids, separated by commas or spaces: `1,2,3`."""
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of token ids; write it like 1,2,3") from None


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model, and how it is loaded."""
    parser.add_argument("model", metavar="MODEL", help="folder, .safetensors or .gguf file, or demo")
    parser.add_argument("--sidecar", metavar="FILE", help="MTP layer from another file (demo: the demo's own sidecar)")
    parser.add_argument("--mmproj", metavar="FILE", help="vision tower from another file, for GGUF models")
    parser.add_argument("--threads", type=int, metavar="N", help="compute threads (default: physical cores)")
    parser.add_argument("--context", type=int, metavar="N", help="most positions (default: the model's own limit)")
    parser.add_argument("--precision", choices=("q8", "q4"), help="quantise the weights of a float model while loading")
    add_kv_cache(parser)
    add_memory_budget(parser)


def add_kv_cache(parser: argparse._ActionsContainer) -> None:
    """What keys and values are stored as."""
    parser.add_argument(
        "--kv-cache",
        choices=get_args(KvCache),
        default="f32",
        help="keys and values of the context: f32 is exact, bf16 takes half the memory, q8 9/32 of it (default: f32)",
    )


def add_memory_budget(parser: argparse._ActionsContainer) -> None:
    """How much memory weights may take."""
    parser.add_argument(
        "--memory-budget",
        type=memory_budget,
        metavar="SIZE",
        help="memory for weights, e.g. 2GiB: what does not fit is streamed from disk; auto takes what is free"
        " (default: everything)",
    )


def open_model(arguments: argparse.Namespace, progress: Callable[[LoadProgress], None], cancel: CancelToken) -> Model:
    """Load the model that the arguments name."""
    options = LoadOptions(
        threads=arguments.threads,
        context=arguments.context,
        memory_budget=arguments.memory_budget,
        precision=arguments.precision,
        kv_cache=arguments.kv_cache,
    )
    path = resolve(arguments.model)
    for option, file in (("--sidecar", arguments.sidecar), ("--mmproj", arguments.mmproj)):
        if file is not None and not file.strip():
            raise OptionError(f"{option} is empty: name a file.")
    if not path.exists():  # said at once, not after seconds of imports
        raise CheckpointError(f"There is no file or folder {path}.")
    from engine.kernels.cpu import configure_environment

    configure_environment()  # before the kernels' first import
    from engine.loading import load_model

    return load_model(
        path,
        sidecar=sidecar_path(arguments.sidecar),
        mmproj=arguments.mmproj,
        options=options,
        progress=progress,
        cancel=cancel,
    )


def sidecar_path(text: str | None) -> Path | None:
    """The file that --sidecar names; the demo's own for `demo`."""
    if text is None:
        return None
    return demo_sidecar_path() if text == DEMO and not Path(DEMO).exists() else Path(text)


def check_output(path: str, option: str) -> None:
    """Raise OptionError, before any work is done, if no file can be written under this name."""
    place = Path(path)
    if not path.strip():
        raise OptionError(f"{option} is empty: name a file.")
    if place.is_dir():
        raise OptionError(f"{option} {path} is a folder: name a file in it.")
    if not place.parent.is_dir():
        raise OptionError(f"{option} {path} cannot be written: there is no folder {place.parent}.")
    if not os.access(place.parent, os.W_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise OptionError(f"{option} {path} cannot be written: choose a place where you may write.")


def read_text_file(path: str) -> str:
    """The text of a file, or of standard input for `-`; OptionError if it cannot be read."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not UTF-8 text.") from None
