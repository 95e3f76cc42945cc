"""`make tarball`: the frozen program in dist/draftscope-VERSION-linux-MACHINE.tar.xz, with a script that installs it.

    python packaging/tarball.py [--bundle build/bundle/draftscope] [--out dist] [--preset 9]

Runs from wherever it is unpacked, or is put into the menu by install.sh. The same bundle gives the same bytes;
what is up to date is left as it is.
"""

from __future__ import annotations

import argparse
import lzma
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import stamp
from debian_depends import wanted
from dist import ROOT, source_date

sys.path.insert(0, str(ROOT))
from engine.version import __version__

HERE = ROOT / "packaging"
ID = "io.github.draftscope.Draftscope"
SCRIPTS = ("install.sh", "uninstall.sh")


def main() -> int:
    parser = argparse.ArgumentParser(description="Pack the frozen program with a script that installs it.")
    parser.add_argument("--bundle", type=Path, default=ROOT / "build" / "bundle" / "draftscope")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to write into (default: dist)")
    parser.add_argument("--preset", type=int, choices=range(10), default=9, help="how hard xz tries (default: 9)")
    arguments = parser.parse_args()
    archive = arguments.out / f"draftscope-{__version__}-linux-{platform.machine()}.tar.xz"
    stamp.refresh(
        archive,
        lambda: build(arguments.bundle, archive, arguments.preset),
        str(arguments.preset),
        stamp.read(arguments.bundle),
    )
    print(f"{archive}  {archive.stat().st_size / 1e6:.1f} MB")
    return 0


def build(bundle: Path, archive: Path, preset: int) -> None:
    """Write the archive's file."""
    name = archive.name.removesuffix(".tar.xz")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="draftscope-tarball-") as folder:
        tree = Path(folder, name)
        lay_out(bundle, tree)
        filters = [{"id": lzma.FILTER_X86}] if platform.machine() == "x86_64" else []
        filters.append({"id": lzma.FILTER_LZMA2, "preset": preset})
        with lzma.open(archive, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
            for path in (tree, *sorted(tree.rglob("*"))):
                tar.add(path, f"{name}/{path.relative_to(tree)}".removesuffix("/."), recursive=False, filter=plain)


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member that does not tell by whom and when it was built."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = source_date()
    if not member.issym():
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def lay_out(bundle: Path, tree: Path) -> None:
    """The program, what desktops want to know of it, and the scripts."""
    shutil.copytree(bundle, tree / "program", symlinks=True)
    share = tree / "share"
    copy(HERE / "linux" / f"{ID}.desktop", share / "applications" / f"{ID}.desktop")
    copy(HERE / "linux" / f"{ID}.metainfo.xml", share / "metainfo" / f"{ID}.metainfo.xml")
    copy(HERE / "linux" / f"{ID}.mime.xml", share / "mime" / "packages" / f"{ID}.xml")
    for page in ("draftscope.1", "draftscope-cli.1"):
        copy(HERE / "linux" / page, share / "man" / "man1" / page)
    shutil.copytree(HERE / "icons" / "hicolor", share / "icons" / "hicolor")
    for script in SCRIPTS:
        copy(HERE / "tarball" / script, tree / script)
        (tree / script).chmod(0o755)
    glibc, libraries = wanted(bundle)
    text = (HERE / "tarball" / "README.txt").read_text(encoding="utf-8")
    text = text.replace("@GLIBC@", ".".join(map(str, glibc))).replace("@LIBRARIES@", columns(sorted(libraries)))
    (tree / "README.txt").write_text(text, encoding="utf-8")


def columns(words: list[str], width: int = 100) -> str:
    """Words in indented lines."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f"  {word}"
    return "\n".join(lines)


def copy(source: Path, target: Path) -> None:
    """Copy a file to a place whose folder may not be there yet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    raise SystemExit(main())
