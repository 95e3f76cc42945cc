"""Wheel and source distribution: nothing that depends on when and by whom they were built, and all that is needed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import engine
from tests.packaging.scripts import PACKAGING, ROOT, load

EPOCH = 1_790_000_000


def wheel(path: Path, names: tuple[str, ...], moment: tuple[int, int, int, int, int, int], mode: int) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = mode << 16
            file.writestr(entry, name * 50)
    return path


def sdist(path: Path, names: tuple[str, ...], owner: str, moment: float, mode: int) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.uid, member.mode = len(name), moment, owner, 1000, mode
            file.addfile(member, io.BytesIO(name.encode()))
    return path


def test_two_builds_of_a_wheel_become_the_same_bytes(tmp_path: Path) -> None:
    dist = load("dist.py")
    names = ("app/a.py", "draftscope-1.dist-info/RECORD", "engine/b.py")
    first = wheel(tmp_path / "1.whl", names, (2026, 1, 2, 3, 4, 6), 0o600)
    second = wheel(tmp_path / "2.whl", names[::-1], (2026, 2, 2, 3, 4, 6), 0o664)
    made = [dist.settle(path, tmp_path / f"out-{path.name}", EPOCH).read_bytes() for path in (first, second)]
    assert made[0] == made[1]
    with zipfile.ZipFile(io.BytesIO(made[0])) as file:
        assert file.namelist()[-1].endswith("RECORD"), "as the format of wheels recommends"
        assert file.read("app/a.py") == b"app/a.py" * 50


def test_two_builds_of_a_source_distribution_become_the_same_bytes(tmp_path: Path) -> None:
    dist = load("dist.py")
    first = sdist(tmp_path / "1.tar.gz", ("d/a", "d/b"), "ann", 1.5, 0o640)
    second = sdist(tmp_path / "2.tar.gz", ("d/b", "d/a"), "ben", 99.0, 0o664)
    made = [dist.settle(path, tmp_path / f"out-{path.name}", EPOCH).read_bytes() for path in (first, second)]
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as file:
        assert {(m.mtime, m.uid, m.uname, m.mode) for m in file} == {(EPOCH, 0, "", 0o644)}


def test_programs_stay_executable(tmp_path: Path) -> None:
    made = load("dist.py").settle(sdist(tmp_path / "1.tar.gz", ("d/run.sh",), "ann", 1.5, 0o755), tmp_path / "o.gz", 1)
    with tarfile.open(made) as file:
        assert file.getmember("d/run.sh").mode == 0o755


def test_the_time_is_the_epoch_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    assert load("dist.py").source_date() == EPOCH


def test_an_unpacked_source_distribution_is_known_by_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dist = load("dist.py")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    for name in ("pyproject.toml", "app/a.py", "build/tree/app/a.py", ".venv/b.py", "app/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.utime(tmp_path / "pyproject.toml", (EPOCH, EPOCH))
    assert dist.source_date() == EPOCH
    assert dist.tree_files() == ["app/a.py", "pyproject.toml"]


def test_the_version_has_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "engine.version.__version__"}
    for program in ("engine", "app"):
        command = [sys.executable, "-m", program, "--version"]
        said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
        assert said.stdout.strip() == f"Draftscope {engine.__version__}"


def test_every_folder_with_modules_is_a_package() -> None:
    """setuptools is told to take packages only; a folder without __init__.py would be missing from the wheel."""
    folders = {path.parent for name in ("engine", "app") for path in (ROOT / name).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


@pytest.mark.slow
def test_two_builds_are_identical_and_the_wheel_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    """`make test-wheel`, and the build once more under another umask."""
    if find_spec("build") is None:
        pytest.skip("the packaging tools are not installed; make package-tools installs them")
    digests = []
    for number, mask in enumerate((0o022, 0o077)):
        before = os.umask(mask)
        try:
            made = load("dist.py").build(tmp_path / str(number))
        finally:
            os.umask(before)
        digests.append([path.read_bytes() for path in made])
    assert digests[0] == digests[1]
    names = zipfile.ZipFile(next((tmp_path / "0").glob("*.whl"))).namelist()
    assert {"resources/demo/model.safetensors", "resources/styles/draftscope.qss", "engine/py.typed"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "packaging")) or "demo/scripts" in name]
    command = [sys.executable, PACKAGING / "smoke.py", next((tmp_path / "0").glob("*.whl")), "--keep-cache"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
