"""Writes the software bill of materials: what the wheel brings into a fresh environment, as CycloneDX JSON.

    python packaging/sbom.py dist/draftscope-0.1.0-py3-none-any.whl [--out dist/draftscope-0.1.0.cdx.json]

Frozen programs hold a part of it, with Python and PyInstaller's starter: their THIRD-PARTY-NOTICES.txt names that part.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from dist import ROOT, source_date


class SbomError(Exception):
    """A sentence for the person; nothing was written."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a software bill of materials.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, help="the file to write (default: beside the wheel)")
    arguments = parser.parse_args()
    version = arguments.wheel.name.split("-")[1]
    out = arguments.out or arguments.wheel.with_name(f"draftscope-{version}.cdx.json")
    try:
        bill = complete(make(arguments.wheel), version)
    except SbomError as error:
        print(error, file=sys.stderr)
        return 1
    out.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{out} lists {len(bill['components'])} components.")
    return 0


def make(wheel: Path) -> dict[str, object]:
    """Install the wheel into an environment without anything else, and list what is in it."""
    with tempfile.TemporaryDirectory(prefix="draftscope-sbom-") as folder:
        venv.create(folder, with_pip=False)
        python = Path(folder, "Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--no-input"]
        run([*pip, "install", "-q", "--constraint", ROOT / "requirements.lock", wheel])
        made = Path(folder, "sbom.json")
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate"]
        run([*tool, "--pyproject", ROOT / "pyproject.toml", "--output-file", made, python])
        bill: dict[str, object] = json.loads(made.read_text("utf-8"))
        return bill


def run(command: list[object]) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date())}
    words = [str(word) for word in command]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SbomError(f"{' '.join(words)} failed:\n{result.stderr[-2000:]}")


def complete(bill: dict[str, object], version: str) -> dict[str, object]:
    """The same with our own version, which pyproject.toml leaves to the package."""
    metadata = bill["metadata"]
    assert isinstance(metadata, dict)
    metadata["component"] |= {"version": version, "purl": f"pkg:pypi/draftscope@{version}"}
    return bill


if __name__ == "__main__":
    raise SystemExit(main())
