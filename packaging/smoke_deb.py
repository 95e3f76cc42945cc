"""`make test-deb`: installs a Debian package into a bare Debian, uses it as people would, and takes it off again.

    python packaging/smoke_deb.py dist/draftscope_0.1.0-1_amd64.deb [--pictures build/pictures] [--suite bookworm]

Needs root's rights, mmdebstrap, Xvfb and ImageMagick. The Debian is a folder without Python. Prints a line for each
thing that held, with how long the starts took, and ends with code 1 at the first that did not.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import smoke_debian
from debian_root import DebianRoot, Person
from smoke import hold
from smoke_program import ask_terminal, ask_window, start_window

HOMES = "/home"
EXPECTED_MS = (5000, 2000)
"""What the first and the second start should take on an idle machine; told, not enforced."""
SYSTEMS_OWN = ("/home/", "/var/cache/apt/", "/var/cache/debconf/", "/var/cache/ldconfig/", "/var/lib/dpkg/",
               "/var/lib/apt/", "/var/log/")  # fmt: skip
"""Where people's own files are, and where Debian keeps its books."""


def main() -> int:
    return smoke_debian.run("Install a Debian package into a bare Debian and use it.", smoke)


def smoke(root: DebianRoot, package: Path, screen: str, pictures: Path) -> None:
    """Install, use, purge."""
    hold(not list(root.path.glob("usr/bin/python3*")), "there is no Python", "the bare Debian has a Python")
    before = prepare(root, package)
    install(root, package)
    people = (
        root.add("anna", 2001, f"{HOMES}/anna"),
        root.add("omer", 2002, f"{HOMES}/Ömer Müller – 家"),
        root.add("rigid", 2003, f"{HOMES}/rigid", writable=False),
    )
    for person in people:
        use(root, person, screen, pictures)
    hold(
        not list(root.path.glob("home/*/.cache/draftscope/kernels/*/*")),
        "nobody had to compile a kernel",
        "kernels were compiled again for a person",
    )
    root.must("apt-get", "purge", "-y", "-qq", "draftscope")
    left = {path for path in root.files() - before if not f"{path}/".startswith(SYSTEMS_OWN)}
    # Who has no home that can be written is told that what was said is kept in a temporary folder.
    kept = {path for path in left if Path(path).name.startswith("history.sqlite3")}
    left -= kept | {str(Path(path).parent) for path in kept}
    hold(not left, "purging leaves nothing but people's own files", f"left after purging: {sorted(left)}")


def prepare(root: DebianRoot, package: Path) -> set[str]:
    """Install what the package depends on, as a desktop has it already; returns the files that are there then."""
    shutil.copyfile(package, root.path / "root" / package.name)
    described = root.must("dpkg-deb", "--field", f"/root/{package.name}", "Depends")
    root.must("apt-get", "update", "-qq")
    root.must("apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", described.strip(), "fonts-dejavu-core")
    return root.files()


def install(root: DebianRoot, package: Path) -> None:
    """As the README says; Recommends are left out, they would bring a desktop's worth of packages."""
    began = time.monotonic()
    told = root.must("apt-get", "install", "-y", "--no-install-recommends", f"/root/{package.name}")
    hold(" 0 newly installed" not in told, f"{package.name} installs in {time.monotonic() - began:.0f} s", told)
    hold(
        "could not be compiled" not in told and any((root.path / "var/cache/draftscope/kernels").iterdir()),
        "kernels were compiled for this processor",
        f"no kernels were compiled:\n{told[-2000:]}",
    )


def use(root: DebianRoot, person: Person, screen: str, pictures: Path) -> None:
    """Everything that is tried as one person."""
    start = partial(start_as, root, person, screen)
    first = start_window(start, person.name, pictures / f"{person.name}-screen.png", screen)
    second = start_window(start, person.name)
    for name, took, expected in zip(("first", "second"), (first, second), EXPECTED_MS, strict=True):
        print(f"      {name} start {took / 1000:.1f} s (should be at most {expected / 1000:.0f} s)")
    ask_terminal(start, person.name)
    picture = root.path / "tmp" / f"{person.name}.png"
    try:
        ask_window(start, person.name, f"/tmp/{picture.name}", picture)
        shutil.copyfile(picture, pictures / f"{person.name}-reply.png")
    finally:
        picture.unlink(missing_ok=True)


def start_as(root: DebianRoot, person: Person, screen: str, words: Sequence[str]) -> list[str]:
    """The words that start a program as a person at a display."""
    return root.command(words, person, {"DISPLAY": screen})


if __name__ == "__main__":
    raise SystemExit(main())
