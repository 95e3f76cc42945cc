"""The command that `smoke_deb.py` and `smoke_tarball.py` both are: a file, a bare Debian to try it in, a display."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from debian_root import DebianRoot, RootError, debian_root, display
from smoke import ROOT, SmokeError

Smoke = Callable[[DebianRoot, Path, str, Path], None]
"""Tries a file in a root, at the display of this name, and puts pictures into a folder; raises what did not hold."""


def run(description: str, smoke: Smoke) -> int:
    """Read the command line and try the file that it names; returns the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("file", type=Path)
    parser.add_argument("--pictures", type=Path, default=ROOT / "build" / "pictures", help="folder for screenshots")
    parser.add_argument("--suite", default="bookworm", help="Debian's release (default: bookworm)")
    arguments = parser.parse_args()
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    try:
        with debian_root(arguments.suite) as root, display() as screen:
            smoke(root, arguments.file.resolve(), screen, arguments.pictures)
    except (SmokeError, RootError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0
