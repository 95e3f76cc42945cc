"""A small Debian in a folder, to install packages into and to run programs in as people would. Needs root's rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from smoke import ROOT, finish

MIRROR = "http://deb.debian.org/debian"
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LONGEST_S = 1800
CHROOT = shutil.which("chroot", path=f"{os.defpath}:{_PATH}") or "chroot"
"""It lies where the PATH of a person who may become root does not always lead."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account."""

    name: str
    number: int
    home: str


class RootError(Exception):
    """The folder cannot be made, or what ran in it failed."""


@dataclass(frozen=True, slots=True)
class DebianRoot:
    """The folder, while it is there."""

    path: Path

    def run(
        self, command: Sequence[str], person: Person | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root or as a person; its output is text."""
        return finish(self.command(command, person, environment), _LONGEST_S)

    def command(
        self, command: Sequence[str], person: Person | None = None, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """The words that run a command in here."""
        who = [f"--userspec={person.number}:{person.number}"] if person else []
        values = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": person.home if person else "/root", **(environment or {})}
        return [CHROOT, *who, str(self.path), "env", "-i", *(f"{k}={v}" for k, v in values.items()), *command]

    def must(self, *command: str) -> str:
        """Run a command as root; what it printed.

        Raises:
            RootError: it failed.
        """
        done = self.run(command, environment={"DEBIAN_FRONTEND": "noninteractive"})
        if done.returncode != 0:
            raise RootError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    def add(self, name: str, number: int, home: str, writable: bool = True) -> Person:
        """Make an account."""
        with (self.path / "etc/passwd").open("a", encoding="utf-8") as file:
            file.write(f"{name}:x:{number}:{number}::{home}:/bin/sh\n")
        folder = self.path / home.lstrip("/")
        folder.mkdir(parents=True)
        if writable:
            os.chown(folder, number, number)
        return Person(name, number, home)

    def files(self) -> set[str]:
        """Everything in it but what the system keeps in memory."""
        found = set()
        for folder, folders, names in os.walk(self.path):
            inside = "/" + os.path.relpath(folder, self.path).removeprefix(".")
            if inside == "/":
                folders[:] = [name for name in folders if name not in {"proc", "dev", "sys"}]
            found |= {os.path.join(inside, name) for name in (*folders, *names)}
        return found


@contextmanager
def debian_root(suite: str = "bookworm") -> Iterator[DebianRoot]:
    """A fresh one, with nothing that Debian does not need to be itself. What was fetched is kept for the next time.

    Raises:
        RootError: it cannot be made here.
    """
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise RootError("This needs root's rights and mmdebstrap (apt-get install mmdebstrap).")
    archive = ROOT / "build" / f"debian-{suite}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        made = archive.with_suffix(".part.tar")
        command = ["mmdebstrap", "--mode=root", "--variant=minbase", suite, str(made), MIRROR]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RootError(f"mmdebstrap failed:\n{done.stderr[-3000:]}")
        made.rename(archive)
    with tempfile.TemporaryDirectory(prefix="draftscope-root-") as folder:
        path = Path(folder)
        subprocess.run(["tar", "-C", folder, "-xpf", str(archive)], check=True)
        shutil.copyfile("/etc/resolv.conf", path / "etc/resolv.conf")
        with mounted(path):
            yield DebianRoot(path)


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    """What the kernel tells of processes, in a root. Where mounting is not allowed, programs have to do without."""
    (path / "dev/shm").chmod(0o1777)  # as it is where it is mounted
    target = path / "proc"
    done = subprocess.run(["mount", "-t", "proc", "proc", str(target)], capture_output=True, check=False)
    if done.returncode != 0:
        print("note: /proc cannot be mounted here")
    try:
        yield
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", str(target)], check=False)


@contextmanager
def display() -> Iterator[str]:
    """A display without a screen; its name. Programs reach it from within a root, as its socket is no file."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1400x900x24", "-nolisten", "tcp"]
    server = subprocess.Popen(
        command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as file:
            yield f":{file.readline().strip()}"
    finally:
        server.terminate()
        server.wait()
