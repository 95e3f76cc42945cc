"""`make deb`: a Debian package of the frozen program, dist/draftscope_VERSION_ARCHITECTURE.deb.

    python packaging/deb.py [--bundle build/bundle/draftscope] [--out dist] [--compression zstd]

The program lies in /usr/lib/draftscope. What it needs of the system is read from its libraries. Kernels are compiled
when the package is installed (debian/postinst). The same bundle gives the same bytes; what is up to
date is left as it is.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path

import stamp
from debian_depends import UnknownLibraryError, depends
from dist import ROOT, source_date

sys.path.insert(0, str(ROOT))
from engine.version import __version__

HERE = ROOT / "packaging"
NAME = "draftscope"
ID = "io.github.draftscope.Draftscope"
MAINTAINER = "The Draftscope authors <draftscope@draftscope.github.io>"
HOMEPAGE = "https://draftscope.github.io/"
REVISION = "1"
PROGRAMS = ("draftscope", "draftscope-cli")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a Debian package of the frozen program.")
    parser.add_argument("--bundle", type=Path, default=ROOT / "build" / "bundle" / NAME)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to write into (default: dist)")
    parser.add_argument("--compression", choices=("xz", "zstd"), default="xz", help="zstd is quicker and larger")
    arguments = parser.parse_args()
    package: Path = arguments.out / f"{NAME}_{__version__}-{REVISION}_{architecture()}.deb"
    try:
        stamp.refresh(
            package,
            lambda: build(arguments.bundle, package, arguments.compression),
            arguments.compression,
            stamp.read(arguments.bundle),
        )
    except UnknownLibraryError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{package}  {package.stat().st_size / 1e6:.1f} MB")
    return 0


def build(bundle: Path, package: Path, compression: str) -> None:
    """Write the package's file."""
    epoch = source_date()
    with tempfile.TemporaryDirectory(prefix="draftscope-deb-") as folder:
        tree = Path(folder, "root")
        lay_out(bundle, tree, epoch)
        control(tree, depends(tree / "usr/lib" / NAME))
        settle(tree, epoch)
        package.parent.mkdir(parents=True, exist_ok=True)
        # One thread: how xz cuts its input must not depend on the machine.
        options = ["--root-owner-group", f"-Z{compression}", "-z9" if compression == "xz" else "-z10"]
        subprocess.run(
            ["dpkg-deb", *options, "--threads-max=1", "--build", str(tree), str(package)],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
            stdout=subprocess.DEVNULL,
            check=True,
        )


def architecture() -> str:
    """Debian's name for this machine's kind."""
    shown = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def lay_out(bundle: Path, tree: Path, epoch: int) -> None:
    """Everything that is installed, where it is installed."""
    shutil.copytree(bundle, tree / "usr/lib" / NAME, symlinks=True)
    (tree / "usr/lib" / NAME / "LICENSE").unlink()  # Debian has that text already
    (tree / "usr/lib" / NAME / "kernels").symlink_to(f"/var/cache/{NAME}/kernels")
    (tree / "var/cache" / NAME / "kernels").mkdir(parents=True)
    for program in PROGRAMS:
        link = tree / "usr/bin" / program
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../lib/{NAME}/{program}")
        compress(HERE / "linux" / f"{program}.1", tree / "usr/share/man/man1" / f"{program}.1.gz")
    copy(HERE / "linux" / f"{ID}.desktop", tree / "usr/share/applications")
    copy(HERE / "linux" / f"{ID}.metainfo.xml", tree / "usr/share/metainfo")
    copy(HERE / "linux" / f"{ID}.mime.xml", tree / "usr/share/mime/packages", f"{ID}.xml")
    shutil.copytree(HERE / "icons" / "hicolor", tree / "usr/share/icons/hicolor")
    documents = tree / "usr/share/doc" / NAME
    compress(ROOT / "CHANGELOG.md", documents / "changelog.gz")
    write(documents / "copyright", fill(HERE / "debian" / "copyright.in", {}))
    write(tree.parent / "changelog", changelog(epoch))
    compress(tree.parent / "changelog", documents / "changelog.Debian.gz")
    copy(HERE / "debian" / "lintian-overrides", tree / "usr/share/lintian/overrides", NAME)


def control(tree: Path, dependencies: list[str]) -> None:
    """The package's description, its scripts and the digests of its files."""
    folder = tree / "DEBIAN"
    installed = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    values = {
        "VERSION": f"{__version__}-{REVISION}",
        "ARCHITECTURE": architecture(),
        "SIZE": str(sum(-(-path.stat().st_size // 1024) for path in installed)),
        "DEPENDS": ", ".join(dependencies),
    }
    write(folder / "control", fill(HERE / "debian" / "control.in", values))
    lines = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in installed)
    write(folder / "md5sums", "".join(lines))
    for script in ("postinst", "postrm"):
        copy(HERE / "debian" / script, folder).chmod(0o755)


def fill(template: Path, values: Mapping[str, str]) -> str:
    """A template with its @NAMES@ replaced."""
    text = template.read_text(encoding="utf-8")
    for name, value in {"MAINTAINER": MAINTAINER, "HOMEPAGE": HOMEPAGE, **values}.items():
        text = text.replace(f"@{name}@", value)
    return text


def changelog(epoch: int) -> str:
    """Debian's own changelog: it says where the real one is."""
    entry = f"{NAME} ({__version__}-{REVISION}) unstable; urgency=medium"
    return (
        f"{entry}\n\n  * Draftscope {__version__}; see /usr/share/doc/{NAME}/changelog.gz.\n\n"
        f" -- {MAINTAINER}  {formatdate(epoch)}\n"
    )


def settle(tree: Path, epoch: int) -> None:
    """Modes that do not depend on the umask, and one time for all."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def copy(source: Path, folder: Path, name: str = "") -> Path:
    """Copy a file into a folder that may not be there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(source, folder / (name or source.name)))


def compress(source: Path, target: Path) -> None:
    """As gzip -9n does, with neither name nor time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def write(path: Path, text: str) -> None:
    """Write a text file into a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
