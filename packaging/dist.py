"""`make wheel`: builds dist/draftscope-*.whl and .tar.gz, twice the same bytes from the same commit.

    python packaging/dist.py [--out dist]

Builds from a copy of the tracked files, so that nothing else that lies around gets in, with the pinned setuptools. What
still differs between two builds (times, owners, the umask's bits) is then set: times to SOURCE_DATE_EPOCH, or else to
the time of the commit.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_ZIP_TIME = 315_532_800
"""1 January 1980: a zip file knows no earlier times."""

LEFT_OUT = (".venv", "build", "dist", "__pycache__", "*.egg-info")
"""What may lie in an unpacked source distribution and belongs to no new one."""


class BuildError(Exception):
    """A sentence for the person; nothing was built."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the wheel and the source distribution.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to write into (default: dist)")
    try:
        for path in build(parser.parse_args().out):
            print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build(out: Path) -> list[Path]:
    """The wheel and the source distribution, in `out`."""
    epoch = source_date()
    with tempfile.TemporaryDirectory(prefix="draftscope-build-") as folder:
        tree, made = Path(folder, "draftscope"), Path(folder, "made")
        copy_tree(tree)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PIP_CONSTRAINT": str(ROOT / "requirements.lock")}
        command = [sys.executable, "-m", "build", "--outdir", str(made), str(tree)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(f"The build failed:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
        out.mkdir(parents=True, exist_ok=True)
        return [settle(path, out / path.name, epoch) for path in sorted(made.iterdir())]


def source_date() -> int:
    """SOURCE_DATE_EPOCH, or the time of the commit, which the files of a source distribution have."""
    if text := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(text)
    if (ROOT / ".git").exists():
        return int(git("log", "-1", "--format=%ct"))
    return int((ROOT / "pyproject.toml").stat().st_mtime)


def git(*words: str) -> bytes:
    """What a command of git's prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"git {' '.join(words)} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def tree_files() -> list[str]:
    """What git tracks and is there, by its path below the project; all of an unpacked source distribution."""
    if (ROOT / ".git").exists():
        listed = filter(None, os.fsdecode(git("ls-files", "-z")).split("\0"))
        return sorted(name for name in listed if (ROOT / name).is_file())
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in LEFT_OUT)]
        found += [Path(folder, name).relative_to(ROOT).as_posix() for name in names]
    return sorted(found)


def copy_tree(tree: Path) -> None:
    """Copy the project's files as they are now."""
    for name in tree_files():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)


def settle(made: Path, target: Path, epoch: int) -> Path:
    """Write `made` to `target` with everything set that depends on when and by whom it was built."""
    (settle_wheel if made.suffix == ".whl" else settle_sdist)(made, target, epoch)
    return target


def settle_wheel(made: Path, target: Path, epoch: int) -> None:
    """The same entries in order, at one time and with one mode; RECORD holds digests of contents and stays true."""
    moment = time.gmtime(max(epoch, FIRST_ZIP_TIME))[:6]
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as copy:
        for name in sorted(source.namelist(), key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the modes below are Unix's, wherever this runs
            entry.external_attr = 0o100644 << 16
            copy.writestr(entry, source.read(name), compresslevel=9)


def settle_sdist(made: Path, target: Path, epoch: int) -> None:
    """The same members in order, of one time and owner; only whether a file is executable is kept."""
    bare = io.BytesIO()
    with tarfile.open(made) as source, tarfile.open(fileobj=bare, mode="w", format=tarfile.PAX_FORMAT) as copy:
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            content = source.extractfile(member) if member.isreg() else None
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            copy.addfile(member, content)
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch) as packed:
        packed.write(bare.getvalue())


if __name__ == "__main__":
    raise SystemExit(main())
