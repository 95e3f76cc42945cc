"""What a Linux library or program needs of others, as `readelf` tells it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[(.+)\]")
_GLIBC = re.compile(r"Name: GLIBC_(\d+(?:\.\d+)+)\s")
_LOAD = re.compile(r"^\s*LOAD\s+(0x[0-9a-f]+) (0x[0-9a-f]+) .*?(0x[0-9a-f]+)\s*$", re.MULTILINE)
_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Needs:
    """What one file needs to be loaded."""

    libraries: frozenset[str]
    """By the names that the loader knows."""
    glibc: tuple[int, ...]
    """The lowest version of the C library, (2, 34); empty for one that asks for none."""
    loadable: bool
    """Whether its segments lie where the loader can map them: `strip` spoils files that were patched before."""


def is_elf(path: Path) -> bool:
    """Whether a file is a library or program of Linux, and no link to one."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == _MAGIC


def files(folder: Path) -> Iterator[Path]:
    """All libraries and programs in a folder, in order."""
    return (path for path in sorted(folder.rglob("*")) if is_elf(path))


def needs(path: Path) -> Needs:
    """Ask readelf."""
    command = ["readelf", "-W", "--dynamic", "--segments", "--version-info", str(path)]
    return parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def parse(text: str) -> Needs:
    """Understand what readelf prints."""
    versions = [tuple(map(int, found.split("."))) for found in _GLIBC.findall(text)]
    segments = [tuple(int(number, 16) for number in found) for found in _LOAD.findall(text)]
    return Needs(
        frozenset(_NEEDED.findall(text)),
        max(versions, default=()),
        all((address - offset) % max(alignment, 1) == 0 for offset, address, alignment in segments),
    )
