"""A file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from engine.errors import OptionError, WriteError

_SPARE = 16 << 20  # bytes that a disk keeps for itself and others


def check_target(target: Path, sources: Iterable[Path], overwrite: bool) -> None:
    """OptionError unless `target` can be written without touching one of `sources`, or a file that is in the way."""
    if target.is_dir() or not target.name:
        raise OptionError(f"{target} is a folder; name the file to write.")
    if not target.parent.is_dir():
        raise OptionError(f"There is no folder {target.parent} to write {target.name} into.")
    if not target.exists():
        return
    if any(source.exists() and source.samefile(target) for source in sources):
        raise OptionError(f"{target.name} is the model that is read; choose another name for the result.")
    if not overwrite:
        raise OptionError(f"{target} is there already; choose another name, or replace it with --overwrite.")


@contextlib.contextmanager
def new_file(target: Path, nbytes: int) -> Iterator[IO[bytes]]:
    """A file to write `nbytes` bytes into. It takes its name when the block ends; after an error nothing is left.

    Raises:
        WriteError: the disk is too full, or cannot be written.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        free = shutil.disk_usage(target.parent).free
        if free < nbytes + _SPARE:
            raise WriteError(
                f"{target.name} needs {nbytes / 1e9:,.2f} GB, but the disk of {target.parent} has {free / 1e9:,.2f} GB"
                " free; make room or choose another folder."
            )
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise WriteError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
