"""Two builds are compared by all that reaches the person who installs them."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.scripts import PACKAGING, load

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and modes of Unix")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(PACKAGING))
    script = load("compare_builds.py")
    monkeypatch.setattr(script, "PLACE", tmp_path)
    return script


def build(top: Path) -> Path:
    """A small program."""
    (top / "lib").mkdir(parents=True)
    (top / "lib" / "a.so").write_bytes(b"library")
    (top / "start").write_bytes(b"program")
    (top / "link").symlink_to("lib/a.so")
    for path in (*top.rglob("*"), top):
        os.utime(path, (1_790_000_000, 1_790_000_000), follow_symlinks=False)
    return top


def test_the_same_build_at_two_places_differs_in_nothing(script: ModuleType, tmp_path: Path) -> None:
    made = [build(tmp_path / who / "draftscope") for who in ("one", "other")]
    assert list(script.differences(*made)) == []


def test_all_that_differs_is_told(script: ModuleType, tmp_path: Path) -> None:
    first, second = (build(tmp_path / who / "draftscope") for who in ("one", "other"))
    (second / "lib" / "b.so").touch()
    (second / "link").unlink()
    (second / "link").symlink_to("lib/b.so")
    (second / "start").chmod(0o755)
    (second / "lib" / "a.so").write_bytes(b"other")
    for path in second.rglob("*"):
        os.utime(path, (1_790_000_000, 1_790_000_000), follow_symlinks=False)
    os.utime(second, (1, 1))
    told = list(script.differences(first, second))
    assert [line.split(":")[0].removeprefix("draftscope/") for line in told] == [
        ".", "lib/a.so", "lib/b.so", "link", "start"
    ]  # fmt: skip
    assert told[2].endswith("only in other")
    assert "-rwxr-xr-x" in told[4]


def test_packages_are_compared_by_their_bytes_alone(script: ModuleType, tmp_path: Path) -> None:
    first, second = tmp_path / "one.deb", tmp_path / "two.deb"
    first.write_bytes(b"package")
    second.write_bytes(b"package")
    os.utime(second, (1, 1))
    assert list(script.differences(first, second)) == []
    second.write_bytes(b"packagE")
    assert list(script.differences(first, second)) == ["one.deb/.: content"]
