"""Makes the pictures of the documents: the real window on the demo, driven through its parts.

python packaging/screenshots.py [FOLDER]           those that the documents show (default: packaging/screenshots)
python packaging/screenshots.py FOLDER --all       each panel and dialog, light and dark, for looking at; with --size
                                                   2560x1440 or QT_SCALE_FACTOR=2 as large or sharp screens show them
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
SHOWN = ("chat-light", "chat-dark", "inspector-light", "comparison-light", "library-light")
"""Of the tour's pictures, those in the documents."""


def run(script: str, *arguments: str) -> None:
    """Run a script beside this one; raises CalledProcessError if it failed."""
    subprocess.run([sys.executable, str(PACKAGING / script), *arguments], check=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Take the pictures of the documents.")
    parser.add_argument("folder", nargs="?", type=Path, default=PACKAGING / "screenshots")
    parser.add_argument("--all", action="store_true", help="each panel and dialog, light and dark")
    parser.add_argument("--size", default="1280x800", help="of the window (default: 1280x800)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.all:
        run("screenshot_tour.py", str(arguments.folder), "--size", arguments.size, "--everything")
    else:
        with tempfile.TemporaryDirectory(prefix="draftscope-pictures-") as folder:
            run("screenshot_tour.py", folder, "--size", arguments.size)
            for name in SHOWN:
                shutil.copy(Path(folder) / f"{name}.png", arguments.folder)
    for name in ("memory", "picture"):
        run(f"screenshot_{name}.py", str(arguments.folder / f"{name}.png"))


if __name__ == "__main__":
    main()
