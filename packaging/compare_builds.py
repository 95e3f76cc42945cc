"""`make compare-builds`: builds the last commit twice, for two people at two places, and says what differs.

    python packaging/compare_builds.py

Each build has a clone and an environment of its own; place, umask, time zone and language differ. Compared are the
frozen program, and on Linux the .deb and the tar.xz, both packed quickly. Ends with code 1 when anything differs; the
builds are then left in build/compare.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from dist import ROOT

PLACE = ROOT / "build" / "compare"
BUILDERS: tuple[tuple[str, int, Mapping[str, str]], ...] = (
    ("one", 0o022, {"TZ": "UTC", "LANG": "C.UTF-8"}),
    ("the other one – für 家", 0o077, {"TZ": "Asia/Tokyo", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "7"}),
)
"""Where somebody builds, with which umask, and with which settings."""
PACKERS = (("deb.py", "--compression", "zstd"), ("tarball.py", "--preset", "0"))


def main() -> int:
    shutil.rmtree(PLACE, ignore_errors=True)
    made = [build(PLACE / name, umask, settings) for name, umask, settings in BUILDERS]
    found = [line for first, second in zip(*made, strict=True) for line in differences(first, second)]
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} differences; the builds are in {PLACE}", file=sys.stderr)
        return 1
    print(f"The same bytes, times and modes: {', '.join(path.name for path in made[0])}")
    shutil.rmtree(PLACE)
    return 0


def build(place: Path, umask: int, settings: Mapping[str, str]) -> list[Path]:
    """Build in a fresh clone; returns what was made."""
    print(f"building in {place}", flush=True)
    dropped = ("PYTHONPATH", "SOURCE_DATE_EPOCH", "VIRTUAL_ENV")
    environment = {**{name: value for name, value in os.environ.items() if name not in dropped}, **settings}

    def run(*command: str | Path) -> None:
        subprocess.run(command, env=environment, cwd=place, umask=umask, stdin=subprocess.DEVNULL, check=True)

    place.mkdir(parents=True)
    run("git", "clone", "--quiet", ROOT, ".")
    run(sys.executable, "-m", "venv", ".venv")
    python = place / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements-package.lock")
    run(python, "packaging/bundle.py")
    if shutil.which("dpkg-deb"):
        for script, *choices in PACKERS:
            run(python, f"packaging/{script}", *choices)
    packages = sorted((place / "dist").glob("*"))
    return [place / "build" / "bundle" / "draftscope", *packages]


def differences(first: Path, second: Path) -> Iterator[str]:
    """A line for each file that only one has, or that has other content, another time or another mode."""
    here, there = ({path.relative_to(top): path for path in (top, *top.rglob("*"))} for top in (first, second))
    for name in sorted({*here, *there}):
        shown = f"{first.name}/{name}"
        if name not in here or name not in there:
            yield f"{shown}: only in {(here.get(name) or there[name]).relative_to(PLACE).parts[0]}"
            continue
        one, other = here[name].lstat(), there[name].lstat()
        if content(here[name]) != content(there[name]):
            yield f"{shown}: content"
        if first.is_dir() and (one.st_mode, one.st_mtime) != (other.st_mode, other.st_mtime):
            yield f"{shown}: {describe(one)}, or {describe(other)}"


def content(path: Path) -> bytes:
    """What a file holds, or where a link leads."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


def describe(found: os.stat_result) -> str:
    """Mode and time, for a person."""
    return f"{stat.filemode(found.st_mode)} {found.st_mtime}"


if __name__ == "__main__":
    raise SystemExit(main())
