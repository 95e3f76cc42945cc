"""`make test-tarball`: unpacks the tar.xz in a bare Debian, installs it for one person, uses it, and takes it off.

    python packaging/smoke_tarball.py dist/draftscope-0.1.0-linux-x86_64.tar.xz [--pictures build/pictures]

Everything lies under names with spaces and letters beyond ASCII. Needs root's rights, mmdebstrap, Xvfb and ImageMagick.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import smoke_debian
from debian_depends import depends
from debian_root import DebianRoot, Person
from smoke import SmokeError, hold
from smoke_program import ask_terminal, ask_window, start_window

HOMES = "/home"
HOME = f"{HOMES}/Ömer Müller – 家"
UNPACKED = f"{HOME}/Neue Programme"
PREFIX = f"{HOME}/meine $Programme & 50% mehr"


def main() -> int:
    return smoke_debian.run("Install the tar.xz into a bare Debian and use it.", smoke)


def smoke(root: DebianRoot, archive: Path, screen: str, pictures: Path) -> None:
    """Unpack, run from there, install, use, take off."""
    person = root.add("omer", 2001, HOME)
    folder = unpack(root, archive, person)
    prepare(root, folder)
    before = root.files()
    use(root, person, f"{folder}/program", screen, pictures / "unpacked.png")
    told = as_person(root, person, ["sh", f"{folder}/install.sh", "--prefix", PREFIX])
    hold("could not be compiled" not in told, "install.sh installs and compiles kernels", told)
    check_menu(root)
    use(root, person, f"{PREFIX}/bin", screen, pictures / "installed.png")
    as_person(root, person, ["sh", f"{folder}/install.sh", "--prefix", PREFIX, "--no-warm-up"])
    hold(True, "install.sh installs over what is there", "")
    as_person(root, person, ["sh", f"{PREFIX}/lib/draftscope/uninstall.sh"])
    data = tuple(f"{HOME}/{name}/" for name in (".cache", ".config", ".local"))
    left = {path for path in root.files() - before if not f"{path}/".startswith(data) and path != PREFIX}
    hold(not left, "uninstall.sh leaves nothing but the person's own files", f"left behind: {sorted(left)}")


def unpack(root: DebianRoot, archive: Path, person: Person) -> str:
    """Unpack as the person; returns the folder, as seen in the root."""
    inside = root.path / UNPACKED.lstrip("/")
    inside.mkdir()
    subprocess.run(["tar", "-C", str(inside), "-xJf", str(archive), "--no-same-owner"], check=True)
    root.must("chown", "-R", f"{person.number}:{person.number}", UNPACKED)
    return f"{UNPACKED}/{archive.name.removesuffix('.tar.xz')}"


def prepare(root: DebianRoot, folder: str) -> None:
    """The libraries that a desktop has, and the tools that look after its menus."""
    wanted = ", ".join(depends(root.path / folder.lstrip("/") / "program"))
    tools = ("desktop-file-utils", "shared-mime-info", "fonts-dejavu-core")
    root.must("apt-get", "update", "-qq")
    root.must("apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", wanted, *tools)


def as_person(root: DebianRoot, person: Person, command: Sequence[str]) -> str:
    """What a command of a person's prints; it has to succeed."""
    done = root.run(command, person)
    if done.returncode != 0:
        raise SmokeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_menu(root: DebianRoot) -> None:
    """The desktop's menu starts the program by a path that is quoted as it has to be."""
    folder = root.path / PREFIX.lstrip("/") / "share" / "applications"
    (entry,) = folder.glob("*.desktop")
    line = next(line for line in entry.read_text(encoding="utf-8").splitlines() if line.startswith("Exec="))
    quoted = f"{PREFIX}/bin/draftscope".replace("$", r"\\$").replace("%", "%%")
    hold(line == f'Exec="{quoted}" %F', "the menu's entry names the program", f"the menu's entry says {line}")
    root.must("desktop-file-validate", f"{PREFIX}/share/applications/{entry.name}")


def use(root: DebianRoot, person: Person, programs: str, screen: str, picture: Path) -> None:
    """Start twice, ask in the window and on the terminal."""

    def start(words: Sequence[str]) -> list[str]:
        return root.command([f"{programs}/{words[0]}", *words[1:]], person, {"DISPLAY": screen})

    who = programs.removeprefix(f"{HOME}/")
    for number in ("first", "second"):
        took = start_window(start, who, picture if number == "first" else None, screen)
        print(f"      {number} start {took / 1000:.1f} s")
    ask_terminal(start, who)
    seen = root.path / "tmp" / "reply.png"
    try:
        ask_window(start, who, f"/{seen.relative_to(root.path)}", seen)
    finally:
        seen.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main())
