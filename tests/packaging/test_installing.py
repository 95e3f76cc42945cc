"""The built packages in a bare Debian: what `make test-deb` and `make test-tarball` try, with the slow tests.

Nothing is built here: run `make deb tarball` before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("mmdebstrap", "Xvfb", "import")

pytestmark = pytest.mark.slow


def built(pattern: str) -> Path:
    """The newest package of a kind; skips where there is none, or where none can be installed."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("installing into a bare Debian needs root's rights on Linux")
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"this needs {', '.join(lacking)}")
    found = sorted((ROOT / "dist").glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"there is no dist/{pattern}; make it with: make deb tarball")
    return found[-1]


@pytest.mark.parametrize(
    ("script", "pattern"),
    [("smoke_deb.py", "draftscope_*.deb"), ("smoke_tarball.py", "draftscope-*-linux-*.tar.xz")],
)
def test_it_installs_runs_and_comes_off_clean(script: str, pattern: str, tmp_path: Path) -> None:
    package = built(pattern)
    command = [sys.executable, str(ROOT / "packaging" / script), str(package), "--pictures", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("held: ") >= 10
    assert len(list(tmp_path.glob("*.png"))) >= 2


def test_lintian_finds_nothing() -> None:
    package = built("draftscope_*.deb")
    if shutil.which("lintian") is None:
        pytest.skip("this needs lintian")
    command = ["lintian", "--fail-on", "error,warning", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
