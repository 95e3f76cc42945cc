"""`quantize`: a model in another precision, as a GGUF file."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from engine.cli.console import Console, interruptible
from engine.cli.plan import size

if TYPE_CHECKING:
    from engine.export.quantise import Written


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "quantize",
        aliases=["quantise"],
        help="write a model as a GGUF file of another precision",
        description="Write a model as a GGUF file that other programs run too. The model itself is only read.",
        epilog="Types: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_K, Q5_1, Q5_0, Q4_K_M, Q4_K, Q4_1, Q4_0, IQ4_NL, IQ4_XS,"
        " Q3_K, Q2_K. The _M ones give the tensors that suffer most more bits.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder, .safetensors or .gguf file, or demo")
    parser.add_argument("out", metavar="OUT.gguf", help="the file to write")
    parser.add_argument("--type", required=True, metavar="TYPE", help="precision of the matrices, e.g. Q8_0 or Q4_K_M")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT.gguf if it is there")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    from engine.kernels.cpu import configure_environment

    configure_environment()
    from engine.export.quantise import quantise

    output = Console(arguments.json)
    with interruptible() as cancel:
        written = quantise(
            arguments.model,
            arguments.out,
            arguments.type,
            overwrite=arguments.overwrite,
            progress=output.bar("writing"),
            cancel=cancel,
        )
    output.clear()
    print(json.dumps(written.to_dict()) if arguments.json else "\n".join(_lines(written)))
    return 0


def _lines(written: Written) -> list[str]:
    formats = ", ".join(f"{name} {size(nbytes)}" for name, nbytes in written.formats.items())
    lines = [
        f"{written.path}: {size(written.nbytes)}, from {size(written.source_bytes)}",
        f"{written.tensors} tensors: {formats}",
    ]
    if written.kept:
        lines.append(f"{written.kept} matrices stay as they were quantised before.")
    return [*lines, *written.notes]
