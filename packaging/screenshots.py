"""Makes the pictures of the documents: the real window, driven from its own command line.

python packaging/screenshots.py [FOLDER]     all pictures into FOLDER (default: packaging/screenshots)
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORY = "Tell me a story about a fox and a lamp."


@dataclass(frozen=True)
class Shot:
    """One picture: the name of its file, and the window's arguments."""

    name: str
    arguments: tuple[str, ...]


SHOTS = (
    Shot("chat-light", ("--model", "demo", "--prompt", STORY, "--theme", "light", "--size", "1280x800")),
    Shot("chat-dark", ("--model", "demo", "--prompt", STORY, "--theme", "dark", "--size", "1280x800")),
)


def take(shot: Shot, folder: Path) -> None:
    """Run the window once; raises CalledProcessError if it failed."""
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ}
    picture = folder / f"{shot.name}.png"
    command = [sys.executable, "-m", "app", *shot.arguments, "--screenshot", str(picture), "--quit-when-done"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    print(picture)


def take_by_script(script: str, name: str, folder: Path) -> None:
    """A picture that needs more than the command line: a script beside this one makes it."""
    picture = folder / f"{name}.png"
    subprocess.run([sys.executable, str(ROOT / "packaging" / script), str(picture)], cwd=ROOT, check=True)
    print(picture)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "packaging" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        take(shot, folder)
    take_by_script("screenshot_memory.py", "memory", folder)
    take_by_script("screenshot_picture.py", "picture", folder)


if __name__ == "__main__":
    main()
