"""The scripts of the tar.xz, with a small program in the frozen one's place: names with spaces, quotes and more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
ID = "io.github.draftscope.Draftscope"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts for Linux")


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """What the archive unpacks to."""
    folder = tmp_path / "Neue Programme" / "draftscope"
    program = folder / "program"
    program.mkdir(parents=True)
    for name in ("draftscope", "draftscope-cli"):
        (program / name).write_text('#!/bin/sh\n[ "$1" != warm-up ] || echo code >"$NUMBA_CACHE_DIR/kernel.nbc"\n')
        (program / name).chmod(0o755)
    applications = folder / "share" / "applications"
    applications.mkdir(parents=True)
    shutil.copyfile(PACKAGING / "linux" / f"{ID}.desktop", applications / f"{ID}.desktop")
    shutil.copytree(PACKAGING / "icons" / "hicolor", folder / "share" / "icons" / "hicolor")
    for script in ("install.sh", "uninstall.sh"):
        shutil.copyfile(PACKAGING / "tarball" / script, folder / script)
    return folder


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "HOME": str(script.parent.parent / "home")}
    return subprocess.run(
        ["sh", str(script), *arguments], capture_output=True, text=True, env=environment, cwd="/", check=False
    )


def test_installs_anywhere_and_comes_off_clean(unpacked: Path, tmp_path: Path) -> None:
    prefix = tmp_path / 'Ömers $Ordner & "100%" \\ `mehr`'
    neighbour = prefix / "share" / "icons" / "other.png"
    neighbour.parent.mkdir(parents=True)
    neighbour.touch()
    done = run(unpacked / "install.sh", "--prefix", str(prefix))
    assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.run([prefix / "bin" / "draftscope-cli", "--version"], check=False).returncode == 0
    assert (prefix / "lib" / "draftscope" / "kernels" / "kernel.nbc").is_file()
    entry = (prefix / "share" / "applications" / f"{ID}.desktop").read_text(encoding="utf-8")
    assert understood(entry.split("Exec=", 1)[1].split("\n", 1)[0]) == [str(prefix / "bin" / "draftscope"), "%F"]
    again = run(unpacked / "install.sh", "--prefix", str(prefix), "--no-warm-up")
    assert again.returncode == 0, again.stdout + again.stderr
    off = run(prefix / "lib" / "draftscope" / "uninstall.sh")
    assert off.returncode == 0, off.stdout + off.stderr
    assert [path for path in prefix.rglob("*") if path.is_file() or path.is_symlink()] == [neighbour]
    assert not (prefix / "lib").exists()


def understood(value: str) -> list[str]:
    """The words of an Exec line as the Desktop Entry Specification reads it: first a string, then quoted words."""
    string = value.replace("\\\\", "\\")
    words, word, quoted, escaped = [], "", False, False
    for letter in string:
        if escaped or (quoted and letter not in '\\"'):
            word, escaped = word + letter, False
        elif quoted and letter == "\\":
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif letter == " ":
            words, word = [*words, word], ""
        else:
            word += letter
    return [item.replace("%%", "%") for item in [*words, word]]


def test_what_somebody_else_put_there_stays(unpacked: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "prefix" / "lib" / "draftscope" / "notes.txt"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    done = run(unpacked / "install.sh", "--prefix", str(tmp_path / "prefix"))
    assert done.returncode == 1
    assert "was not installed by this script" in done.stderr
    assert foreign.exists()
    assert run(unpacked / "uninstall.sh").returncode == 1


def test_bad_usage_is_told(unpacked: Path) -> None:
    assert run(unpacked / "install.sh", "--prefix").stderr == "--prefix needs a folder.\n"
    assert "--nonsense is not understood" in run(unpacked / "install.sh", "--nonsense").stderr
    assert "--prefix FOLDER" in run(unpacked / "install.sh", "--help").stdout
