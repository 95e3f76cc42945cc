"""Runs programs in a memory control group, so that their page cache and memory together stay within a limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    """A group that is there; `peak` is what its programs needed most, page cache included."""

    folder: Path
    _peak_file: str

    def run(self, command: Sequence[str | Path | int], **environment: str) -> str:
        """The output of `command`, run inside the group. Raises CalledProcessError, with what it complained about."""
        joined = self.folder / "cgroup.procs"
        # The shell joins before it becomes the program, so that not one page is counted elsewhere.
        script = f'echo $$ > {joined} && exec "$@"'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *map(str, command)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **environment},
        )
        return done.stdout

    @property
    def peak(self) -> int:
        """Bytes."""
        return int((self.folder / self._peak_file).read_text())


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup | None]:
    """A group with `limit` bytes, gone afterwards; None where this system or its rights do not allow one."""
    found = _make(limit)
    try:
        yield found
    finally:
        if found is not None:
            found.folder.rmdir()


def _make(limit: int) -> MemoryGroup | None:
    for parent, limit_file, peak_file in (
        (_ROOT / "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),  # version 1
        (_ROOT, "memory.max", "memory.peak"),
    ):
        folder = parent / f"draftscope-bench-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / limit_file).write_text(str(limit))
            (folder / peak_file).read_text()
        except OSError:
            folder.rmdir()
            continue
        return MemoryGroup(folder, peak_file)
    return None
