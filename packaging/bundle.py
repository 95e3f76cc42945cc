"""`make bundle`: the frozen program, one folder that needs no Python, in build/bundle/draftscope.

    python packaging/bundle.py [--out build/bundle]

Runs PyInstaller with draftscope.spec, takes out symbols and libraries that nothing in the folder asks for, adds the
licences, proves that every module of ours can be imported from the folder alone, and tells the size. The same commit
and environment give the same bytes. A folder that was made of what is here now is left as it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import elf
import stamp
from dist import ROOT, BuildError, copy_tree, source_date

PYTHON_ONLY = "import sys; sys.path[:] = sys.argv[1:3]; import importlib, pkgutil\n"
IMPORT_ALL = (
    PYTHON_ONLY
    + "for package in map(importlib.import_module, ('engine', 'app')):\n"
    + "    for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):\n"
    + "        found.name.endswith('__main__') or importlib.import_module(found.name)\n"
    + "from huggingface_hub import HfApi, errors, get_session, hf_raise_for_status\n"
    + "from huggingface_hub.utils import build_hf_headers\n"
    + "import httpx2; get_session()\n"
)


class BundleError(Exception):
    """A sentence for the person; the folder is not fit to be shipped."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Freeze the program into one folder.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bundle", help="folder (default: build/bundle)")
    bundle: Path = parser.parse_args().out / "draftscope"
    try:
        stamp.refresh(bundle, lambda: build(bundle))
    except (BundleError, BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{bundle}  {size(bundle) / 1e6:.0f} MB in {sum(1 for p in bundle.rglob('*') if p.is_file())} files")
    return 0


def build(bundle: Path) -> None:
    """Freeze into the program's folder, tidy, and check."""
    epoch = source_date()
    freeze(bundle.parent, epoch)
    if sys.platform == "linux":
        drop_unasked(bundle / "_internal")
        strip(bundle / "_internal")
    write_notices(bundle)
    settle(bundle, epoch)
    check_imports(bundle / "_internal")


def freeze(out: Path, epoch: int) -> None:
    """Run PyInstaller on a copy of the tracked files, which nobody edits meanwhile; its log is shown when it fails."""
    work, tree = ROOT / "build" / "pyinstaller", ROOT / "build" / "tree"
    for folder in (work, tree):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    copy_tree(tree)
    # Sets of names are written in the order of their hashes.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--distpath", str(out), "--workpath", str(work)]
    log = work / "log.txt"
    with log.open("w") as file:
        done = subprocess.run(
            [*command, str(tree / "packaging" / "draftscope.spec")],
            env=environment,
            cwd=tree,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise BundleError(f"PyInstaller failed; the end of {log}:\n{log.read_text()[-3000:]}")


def drop_unasked(folder: Path) -> None:
    """Remove Qt's libraries that no library or plugin in the folder needs, and links that then lead nowhere."""
    libraries = folder / "PySide6" / "Qt" / "lib"
    asked = {path: elf.needs(path).libraries for path in elf.files(folder)}
    for path in unasked(asked, libraries):
        path.unlink()
    for path in folder.iterdir():
        if path.is_symlink() and not path.exists():
            path.unlink()


def unasked(asked: Mapping[Path, Iterable[str]], folder: Path) -> set[Path]:
    """The files in `folder` that no other file asks for, nor any that are asked for only by such ones."""
    left = dict(asked)
    while lone := {
        path
        for path in left
        if path.is_relative_to(folder) and not any(path.name in left[other] for other in left if other != path)
    }:
        for path in lone:
            del left[path]
    return set(asked) - set(left)


def strip(folder: Path) -> None:
    """Take symbols out of libraries. One that strip would spoil stays as it is: its makers have stripped it already."""
    for path in elf.files(folder):
        slim = path.with_name(f"{path.name}.slim")
        done = subprocess.run(["strip", "--strip-unneeded", "-o", slim, path], capture_output=True, check=False)
        if done.returncode == 0 and elf.needs(slim).loadable:
            slim.replace(path)
        else:
            slim.unlink(missing_ok=True)


def write_notices(bundle: Path) -> None:
    """Our licence and those of all that is in the folder."""
    shutil.copyfile(ROOT / "LICENSE", bundle / "LICENSE")
    notices = bundle / "_internal" / "resources" / "THIRD-PARTY-NOTICES.txt"
    command: list[str | Path] = [sys.executable, ROOT / "packaging/notices.py", "--bundle", bundle, "--out", notices]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BundleError(done.stderr.strip())
    shutil.copyfile(notices, bundle / notices.name)  # where a person looks for it


def settle(bundle: Path, epoch: int) -> None:
    """One time and plain modes for all files: nothing tells when, by whom and with which umask it was built."""
    programs = {bundle / "draftscope", bundle / "draftscope-cli"}
    follows = os.utime not in os.supports_follow_symlinks  # on Windows, where the folder has no links
    for path in (bundle, *bundle.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path in programs else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=follows)


def check_imports(folder: Path) -> None:
    """Import every module of ours with nothing but the folder to import from."""
    command: list[str | Path] = [sys.executable, "-I", "-S", "-B", "-c", IMPORT_ALL, folder]
    extension_modules = next(folder.glob("python3*/lib-dynload"), folder)
    environment = {"PATH": os.defpath, "HOME": str(folder.parent), "NUMBA_CACHE_DIR": os.devnull}
    if "SYSTEMROOT" in os.environ:  # without it Windows has no network modules
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    done = subprocess.run(
        [*command, extension_modules], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BundleError(f"Not all modules can be imported from {folder}:\n{done.stderr[-3000:]}")


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


if __name__ == "__main__":
    raise SystemExit(main())
