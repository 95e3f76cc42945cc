"""`python -m engine COMMAND …`: chooses the command, and turns errors into one line on stderr and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from engine.cli import bench, doctor, generate, inspect, logits, make_sidecar, quantize, trace, warm_up
from engine.errors import Cancelled, EngineError
from engine.version import __version__

INSTALLED = "draftscope-cli"
"""What an installed Draftscope puts on the PATH."""
BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""As a shell reports a program that SIGPIPE ended."""

COMMANDS = (generate, logits, inspect, quantize, make_sidecar, bench, trace, doctor, warm_up)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    """The whole command line's grammar. Cheap: no command imports what it needs before it runs."""
    parser = OneLineParser(
        prog=program_name(sys.argv[0]),
        description="Run Qwen3.5-family models and look at speculative decoding, without a window.",
        epilog="MODEL is a folder in the published layout, a .safetensors or .gguf file, or the word demo.",
    )
    parser.add_argument("--version", action="version", version=f"Draftscope {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def program_name(started: str) -> str:
    """How the person started this program, for usage and errors."""
    return INSTALLED if Path(started).stem == INSTALLED else "python -m engine"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0, or 2 after bad usage or bad input with one clear line on stderr."""
    _open_closed_streams()
    _speak_utf8()
    try:
        options = make_parser().parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()  # the reader (`| head`) has enough
        return BROKEN_PIPE
    except (KeyboardInterrupt, Cancelled):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except EngineError as error:
        print(_one_line(str(error)), file=sys.stderr)
        return BAD_INPUT
    except OSError as error:  # files' own errors have become the engine's: only the output is left
        _give_up_stdout()
        print(f"The output cannot be written: {error.strerror or error}.", file=sys.stderr)
        return BAD_INPUT
    return code


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _give_up_stdout() -> None:
    """Python would complain once more when it flushes what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """A shell can start a program without stdout or stderr (`>&-`); the next file opened would take their place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open to the end


def _speak_utf8() -> None:
    """Text of a model goes beyond many a terminal's encoding; scripts rely on UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
