"""Where compiled kernels are kept between runs: one folder per version of the kernels, old ones are removed."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

import platformdirs

_UNUSED_S = 30 * 86_400
_KEPT = 2
"""Folders that stay however old they are: this version's, and the one that a person may go back to."""
_OURS = re.compile(r".+-[0-9a-f]{12}")


def cache_folder() -> Path:
    """This version's folder, made and marked as used; one under the temporary folder if it cannot be written."""
    try:
        version = importlib.metadata.version("draftscope")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    home = Path(platformdirs.user_cache_dir("draftscope", appauthor=False)) / "kernels"
    folder = _writable(home / f"{version}-{source_hash()}")
    with contextlib.suppress(OSError):
        os.utime(folder)
    if folder.parent == home:
        prune(home, time.time())
    return folder


@cache
def source_hash() -> str:
    """Twelve hexadecimal digits that change with any source file of the kernels."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def prune(home: Path, now: float) -> None:
    """Remove folders of kernels in `home` that no run has used for 30 days, but for the two used last."""
    used = []
    with contextlib.suppress(OSError), os.scandir(home) as entries:
        used = [
            (entry.stat().st_mtime, entry.path)
            for entry in entries
            if _OURS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
    for when, path in sorted(used, reverse=True)[_KEPT:]:
        if now - when > _UNUSED_S:
            shutil.rmtree(path, ignore_errors=True)


def _writable(folder: Path) -> Path:
    """`folder`, or one under the system's temporary folder if this cannot be made (a read-only home)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        pass
    else:
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="draftscope-kernels-"))
