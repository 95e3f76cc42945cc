"""The set-up behind `make run` and `make test`: what it says, what it skips, and that the pins are whole."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"([A-Za-z0-9_.-]+)==(\S+)")


def load(name: str) -> ModuleType:
    """A script of packaging/, which is a folder of scripts and no package."""
    spec = importlib.util.spec_from_file_location(f"draftscope_{name}", ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with an environment of its own to stamp."""
    module = load("bootstrap")
    monkeypatch.setattr(module, "VENV", tmp_path)
    monkeypatch.setattr(module, "STAMP", tmp_path / "stamp")
    return module


# -- doing nothing twice -----------------------------------------------------------------------------------------------


def test_stamp_skips_everything(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(bootstrap, "provide_system_libraries", lambda required: True)
    monkeypatch.setattr(bootstrap, "venv_works", lambda: False)
    monkeypatch.setattr(bootstrap, "make_venv", lambda: done.append("venv"))
    monkeypatch.setattr(bootstrap, "install", lambda dev: done.append("dev" if dev else "run"))
    bootstrap.prepare(dev=False)
    bootstrap.prepare(dev=False)
    assert done == ["venv", "run"]
    bootstrap.prepare(dev=True)
    assert done == ["venv", "run", "venv", "dev"]
    bootstrap.prepare(dev=False)
    bootstrap.prepare(dev=True)
    assert len(done) == 4


def test_new_pins_are_installed(bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("numpy==1\n")
    monkeypatch.setattr(bootstrap, "LOCKS", {False: lock, True: lock})
    before = bootstrap.make_fingerprint()
    lock.write_text("numpy==2\n")
    assert bootstrap.make_fingerprint() != before


def test_missing_libraries_are_looked_for_again(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "provide_system_libraries", lambda required: False)
    monkeypatch.setattr(bootstrap, "venv_works", lambda: True)
    monkeypatch.setattr(bootstrap, "install", lambda dev: None)
    bootstrap.prepare(dev=False)
    assert not bootstrap.STAMP.exists()


@pytest.mark.parametrize("content", ["", "x", "x ", "y dev", "x dev\n", "\ufffd"])
def test_damaged_stamp_is_no_stamp(bootstrap: ModuleType, content: str) -> None:
    bootstrap.STAMP.write_text(content)
    assert not bootstrap.is_stamped("x", dev=False)


# -- what it says ------------------------------------------------------------------------------------------------------


def missing_everything(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, root: bool) -> None:
    libraries = bootstrap.system_libraries()
    monkeypatch.setattr(libraries, "missing", lambda wanted: wanted)
    monkeypatch.setattr(bootstrap, "system_libraries", lambda: libraries)
    monkeypatch.setattr(bootstrap, "may_use_apt", lambda: root)
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")


def test_without_root_one_command_is_said(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing_everything(bootstrap, monkeypatch, root=False)
    assert not bootstrap.provide_system_libraries(required=False)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "sudo apt-get install libgomp1 libegl1 libgl1" in said
    with pytest.raises(bootstrap.SetupError, match="sudo apt-get install libgomp1"):
        bootstrap.provide_system_libraries(required=True)


def test_as_root_they_are_installed(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    missing_everything(bootstrap, monkeypatch, root=True)
    asked: list[tuple[str, ...]] = []

    def install(packages: tuple[str, ...]) -> None:
        asked.append(packages)
        monkeypatch.setattr(bootstrap.system_libraries(), "missing", lambda wanted: ())

    monkeypatch.setattr(bootstrap, "apt_install", install)
    assert bootstrap.provide_system_libraries(required=True)
    assert "libxcb-cursor0" in asked[0]


def test_missing_venv_module_is_said(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "ensurepip_available", lambda: False)
    monkeypatch.setattr(bootstrap, "may_use_apt", lambda: False)
    with pytest.raises(bootstrap.SetupError, match=r"sudo apt-get install python3\.\d+-venv"):
        bootstrap.make_venv()


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
def test_without_a_python_one_sentence(tmp_path: Path) -> None:
    for tool in ("sh", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    result = subprocess.run(
        ["sh", ROOT / "packaging" / "setup.sh"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "needs Python 3.11" in result.stderr


# -- make run ----------------------------------------------------------------------------------------------------------


def test_without_a_display_the_terminal_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load("run")
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(run.sys, "platform", "linux")
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "start", lambda *arguments: started.append(arguments) or 0)
    assert run.main() == 0
    assert started == [("engine", "generate", "demo", "--prompt", run.PROMPT)]
    assert capsys.readouterr().out == "There is no display; here is the same job on the terminal.\n"


def test_a_stale_display_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load("run")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.setenv("DISPLAY", ":4242")
    monkeypatch.setattr(run.sys, "platform", "linux")
    assert run.why_no_window() == "There is no display"


def test_with_a_display_the_window_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load("run")
    monkeypatch.setattr(run, "why_no_window", lambda: None)
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "start", lambda *arguments: started.append(arguments) or 0)
    run.main()
    assert started == [("app", "--model", "demo")]


# -- the pins ----------------------------------------------------------------------------------------------------------


def pins(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith(("#", "-r "))]
    found = [PIN.fullmatch(line) for line in lines]
    assert all(found), "every line is a package with one exact version"
    return {normal(match[1]): match[2] for match in found if match}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = pins("requirements.lock")
    wanted = {normal(re.split(r"[><=!~; \[]", text)[0]) for text in project["dependencies"]}
    assert wanted <= set(run)
    dev = {normal(re.split(r"[><=!~; \[]", text)[0]) for text in project["optional-dependencies"]["dev"]}
    assert dev <= set(pins("requirements-dev.lock"))
    assert not set(run) & set(pins("requirements-dev.lock"))


def test_pyside_is_a_version_that_python_3_11_survives() -> None:
    version = pins("requirements.lock")["pyside6-essentials"]
    assert tuple(map(int, version.split(".")[:2])) < (6, 12)


def test_pins_are_what_is_installed() -> None:
    """Tests of other versions than the pinned ones would say little about what users get."""
    from importlib.metadata import PackageNotFoundError, version

    for name in ("numpy", "numba", "tokenizers", "pyside6-essentials", "jinja2"):
        try:
            assert version(name) == pins("requirements.lock")[name]
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed")


def test_project_says_what_it_ships() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "draftscope" in project["scripts"] | project["gui-scripts"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert json.loads((ROOT / "resources" / "demo" / "config.json").read_text())["model_type"] == "qwen3_5"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert sys.version_info >= (3, 11)
