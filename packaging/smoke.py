"""`make test-wheel`: installs a wheel into a fresh environment, runs both programs, and takes it off again.

    python packaging/smoke.py dist/draftscope-0.1.0-py3-none-any.whl [--keep-cache]
    python packaging/smoke.py --programs FOLDER           only runs the programs in a folder, as a frozen one's

The home folder has spaces and letters beyond ASCII in its name, and the programs are started from another one. Prints
a line for each thing that held and ends with code 1 at the first that did not. With `--keep-cache` kernels that this
person has compiled before are used; without it they are compiled as on a new computer, which takes a minute or two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMPT = "What is the capital of France?"
PNG = b"\x89PNG\r\n\x1a\n"
HOME = "Ein Zuhause für Ömer – 家"
LONGEST_S = 1200


class SmokeError(Exception):
    """What did not hold."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Install a wheel into a fresh environment and run it.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("wheel", type=Path, nargs="?")
    what.add_argument("--programs", type=Path, metavar="FOLDER", help="run the programs in this folder")
    parser.add_argument("--keep-cache", action="store_true", help="use kernels that were compiled before")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="draftscope-smoke-") as folder:
            person = newcomer(Path(folder), arguments.keep_cache)
            if arguments.programs is not None:
                check_programs(arguments.programs.resolve(), person, Path(folder))
            else:
                smoke(arguments.wheel.resolve(), person, Path(folder))
    except SmokeError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


def smoke(wheel: Path, environment: Mapping[str, str], folder: Path) -> None:
    """Install, run, take off."""
    programs = install(wheel, folder / "environment")
    check_programs(programs, environment, folder)
    run([programs / "python", "-m", "pip", "uninstall", "-qy", "draftscope"], environment, folder)
    left = [path for path in programs.parent.rglob("*draftscope*") if path.name != "__pycache__"]
    hold(not left, "uninstalling leaves nothing", f"{left} is left after uninstalling")


def install(wheel: Path, target: Path) -> Path:
    """A new environment with the wheel in it and the pinned versions of what it needs; returns its programs' folder."""
    venv.create(target, with_pip=True)
    programs = target / ("Scripts" if os.name == "nt" else "bin")
    command: list[str | Path] = [programs / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    lock = str(ROOT / "requirements.lock")
    run([*command, "install", "-q", "--constraint", lock, str(wheel)], bare, target)
    run([*command, "check"], bare, target)
    print(f"held: {wheel.name} installs into a fresh environment")
    return programs


def newcomer(folder: Path, keep_cache: bool) -> dict[str, str]:
    """The environment of somebody new."""
    home = folder / HOME
    home.mkdir()
    dropped = ("PYTHONPATH", "NUMBA_", "XDG_", "DRAFTSCOPE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment |= {"HOME": str(home), "USERPROFILE": str(home), "PYTHONUTF8": "1"}
    if keep_cache:
        environment |= {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
    return environment


def check_programs(programs: Path, environment: Mapping[str, str], folder: Path) -> None:
    """The terminal's program and the window, on the demo model that came with them."""
    cli, window = programs / "draftscope-cli", programs / "draftscope"
    version = run([cli, "--version"], environment, folder).strip()
    hold(version.startswith("Draftscope "), f"{version} says its version", f"--version printed {version!r}")
    started = time.monotonic()
    told = run([cli, "generate", "demo", "--prompt", PROMPT, "--json", "--max-new", "40"], environment, folder)
    text = answer(told)
    hold("Paris" in text, f"the demo model answers {text.strip()!r}", f"the demo model answered {text!r}")
    print(f"      ({time.monotonic() - started:.1f} s)")
    picture = folder / "window.png"
    started = time.monotonic()
    errand = ["--model", "demo", "--prompt", PROMPT, "--screenshot", str(picture), "--size", "1000x700"]
    run([window, *errand, "--quit-when-done"], {"QT_QPA_PLATFORM": "offscreen", **environment}, folder)
    hold(is_picture(picture), "the window answers and is pictured", "no picture of the window")
    print(f"      ({time.monotonic() - started:.1f} s)")


def run(command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> str:
    """What a command prints.

    Raises:
        SmokeError: it failed.
    """
    result = finish([str(part) for part in command], LONGEST_S, environment, folder)
    if result.returncode != 0:
        raise SmokeError(f"{' '.join(map(str, command))} ended with {result.returncode}: {result.stderr[-2000:]}")
    return result.stdout


def finish(
    command: Sequence[str],
    longest_s: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command that nobody answers to its end; its output is text."""
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=longest_s,
        check=False,
    )


def answer(told: str) -> str:
    """The reply in what `draftscope-cli generate --json` printed."""
    records = [json.loads(line) for line in told.splitlines()]
    return "".join(record["text"] for record in records if record["event"] == "finished")


def is_picture(path: Path) -> bool:
    """Whether a file is a picture of a window, and not of an empty one."""
    data = path.read_bytes() if path.exists() else b""
    return data.startswith(PNG) and len(data) > 20_000


def hold(condition: bool, well: str, ill: str) -> None:
    """Say what held, or fail."""
    if not condition:
        raise SmokeError(ill)
    print(f"held: {well}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
