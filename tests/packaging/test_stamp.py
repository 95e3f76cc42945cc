"""What is up to date is not built again, and whatever changes makes it be built again."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.scripts import PACKAGING, load


@pytest.fixture
def stamp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, for a project of one file."""
    monkeypatch.syspath_prepend(str(PACKAGING))
    script = load("stamp.py")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(script, "tree_files", lambda: ["source.py"])
    (tmp_path / "source.py").write_text("x = 1\n")
    return script


def built(stamp: ModuleType, product: Path, *choices: str) -> bool:
    """Whether a refresh built the product."""
    calls: list[int] = []

    def build() -> None:
        calls.append(1)
        product.write_text("made")

    stamp.refresh(product, build, *choices)
    return bool(calls)


def test_what_is_there_and_made_of_the_same_is_left_alone(stamp: ModuleType, tmp_path: Path) -> None:
    product = tmp_path / "made.bin"
    assert built(stamp, product)
    assert not built(stamp, product)


@pytest.mark.parametrize("change", ["source", "mode", "time", "choice", "gone", "overwritten"])
def test_what_changes_makes_it_be_built_again(
    stamp: ModuleType, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, choices = tmp_path / "made.bin", ("xz",)
    assert built(stamp, product, *choices)
    match change:
        case "source":
            (tmp_path / "source.py").write_text("x = 2\n")
        case "mode":
            (tmp_path / "source.py").chmod(0o755)
        case "time":
            monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000001")
        case "choice":
            choices = ("zstd",)
        case "gone":
            product.unlink()
        case "overwritten":
            product.write_text("somebody else's")
    assert built(stamp, product, *choices)


def test_what_a_failed_build_leaves_is_built_again(stamp: ModuleType, tmp_path: Path) -> None:
    product = tmp_path / "made.bin"
    assert built(stamp, product)
    (tmp_path / "source.py").write_text("x = 2\n")

    def fail() -> None:
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk"):
        stamp.refresh(product, fail)
    (tmp_path / "source.py").write_text("x = 1\n")
    assert built(stamp, product)
