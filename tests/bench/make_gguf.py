"""Writes GGUF files with random weights and real shapes, which llama.cpp runs too.

    python -m tests.bench.make_gguf 0.8B FOLDER --types Q8_0 BF16 Q4_K_M

The tokenizer is the demo's, stretched to the vocabulary with tokens that no text has.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from engine import configure_environment, demo_path
from tests.bench.make_checkpoint import PRESETS, make_checkpoint

TYPES = ("Q8_0", "BF16", "Q4_K_M", "Q6_K", "Q5_K_M", "IQ4_XS")
"""Those whose speed BENCHMARKS.md tells."""


def make_ggufs(preset: str, folder: Path, types: Sequence[str]) -> list[Path]:
    """Write one file for each type into `folder`, from a checkpoint that is made there first (and stays)."""
    from engine.export.quantise import quantise

    checkpoint = folder / preset
    if not (checkpoint / "config.json").exists():
        make_checkpoint(checkpoint, PRESETS[preset])
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo_path() / name, checkpoint / name)
    files = [folder / f"{preset}-{wanted}.gguf" for wanted in types]
    for wanted, file in zip(types, files, strict=True):
        quantise(checkpoint, file, wanted, overwrite=True)
    return files


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Write GGUF files with random weights and real shapes.")
    parser.add_argument("preset", choices=[name for name, shapes in PRESETS.items() if not shapes.experts])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--types", nargs="+", default=TYPES, metavar="TYPE", help=f"default: {' '.join(TYPES)}")
    arguments = parser.parse_args()
    configure_environment()
    for file in make_ggufs(arguments.preset, arguments.folder, arguments.types):
        print(file)


if __name__ == "__main__":
    main()
