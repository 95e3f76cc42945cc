"""Where compiled kernels are kept between runs: one folder per version of the kernels, old ones are removed.

A packaged program may bring, beside its executable, a folder `kernels` that was filled when it was installed: for all
users, and never written by the program.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
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
    home = Path(platformdirs.user_cache_dir("draftscope", appauthor=False)) / "kernels"
    folder = _writable(home / f"kernels-{source_hash()}")
    with contextlib.suppress(OSError):
        os.utime(folder)
    if folder.parent == home:
        prune(home, time.time())
    return folder


@cache
def installed_folder(program: Path | None = None) -> Path | None:
    """The kernels that came about when the program was installed; None if there are none that can be trusted.

    What is in there is run. So nobody may have written it but root and who owns the program itself.
    """
    if program is None:
        if not getattr(sys, "frozen", False):
            return None
        program = Path(sys.executable).resolve()
    folder = program.parent / "kernels"
    try:
        owner, state = program.stat().st_uid, folder.stat()
    except OSError:
        return None
    others_write = bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if os.name == "posix" and (others_write or state.st_uid not in {0, owner}):
        return None
    return folder if stat.S_ISDIR(state.st_mode) else None


@cache
def source_hash() -> str:
    """Twelve hexadecimal digits that change with any source file of the kernels (where they are shipped compiled, with
    any compiled one)."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")) or sorted(folder.rglob("*.pyc")):
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
    return _temporary(folder.name)


def _temporary(name: str) -> Path:
    """A folder that the next run finds again, unless somebody else has taken its name: what is in there is run."""
    if os.name == "posix":
        own = Path(tempfile.gettempdir()) / f"draftscope-{os.getuid()}"
        with contextlib.suppress(OSError):
            own.mkdir(mode=0o700, exist_ok=True)
            state = own.lstat()
            if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o077:
                folder = own / name
                folder.mkdir(exist_ok=True)
                atexit.register(_remove_empty, folder)
                return folder
    folder = Path(tempfile.mkdtemp(prefix="draftscope-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_empty(folder: Path) -> None:
    """With the kernels of the installation nothing may have been added; then nothing should be left behind."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()
