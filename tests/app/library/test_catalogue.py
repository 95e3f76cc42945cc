"""The library without widgets, on real files: what is found, matched, forgotten, and read again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.library.catalogue import Catalogue
from app.library.entries import drafts, facts_table, headline
from engine import Report, demo_sidecar_path, describe
from tests.app.conftest import PATIENCE_MS

TINY = Path(__file__).resolve().parents[2] / "data" / "tiny-dense"


def read(qtbot: QtBot, catalogue: Catalogue, *folders: Path, files: tuple[Path, ...] = (), forgotten: str = "") -> None:
    catalogue.show(folders, files, [forgotten] if forgotten else [])
    qtbot.waitUntil(lambda: not catalogue.reading, timeout=PATIENCE_MS)


def test_checkpoints_come_first_with_their_sidecars_and_faults_last(
    qtbot: QtBot, catalogue: Catalogue, models: Path
) -> None:
    read(qtbot, catalogue, models)
    a, b, broken = catalogue.entries
    assert (a.report.name, b.report.name, broken.report.name) == ("a", "b", "broken")
    assert [c.path.name for c in a.sidecars] == ["mtp-tuned.safetensors"]
    assert b.companions == ()
    assert a.openable
    assert drafts(a) == "MTP inside"
    assert dict(facts_table(a))["Context"] == "4,096 tokens"
    assert not broken.openable
    assert headline(broken) == broken.report.problems[0]


def test_a_sidecar_that_does_not_fit_says_why(qtbot: QtBot, catalogue: Catalogue, models: Path) -> None:
    """The sidecar of the demo beside a checkpoint of another width."""
    shutil.copytree(TINY, models / "b" / "tiny", ignore=shutil.ignore_patterns("gguf", "*.npz"))
    shutil.copy(demo_sidecar_path(), models / "b" / "tiny" / "mtp-demo.safetensors")
    read(qtbot, catalogue, models / "b" / "tiny")
    (tiny,) = catalogue.entries
    assert tiny.sidecars == ()
    assert tiny.companions[0].problem
    assert "mtp-demo.safetensors" in tiny.companions[0].problem


def test_forgotten_ones_are_left_out_and_single_files_are_told_of(
    qtbot: QtBot, catalogue: Catalogue, models: Path
) -> None:
    read(qtbot, catalogue, models, forgotten=str(models / "b"))
    assert [e.report.name for e in catalogue.entries] == ["a", "broken"]
    read(qtbot, catalogue, files=(models / "a",))
    assert [e.report.name for e in catalogue.entries] == ["a"]
    assert len(catalogue.entries[0].sidecars) == 1


def test_only_what_changed_is_read_again(
    qtbot: QtBot, catalogue: Catalogue, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counting(path: Path) -> Report:
        asked.append(path.name)
        return describe(path)

    monkeypatch.setattr(catalogue, "_describe", counting)
    read(qtbot, catalogue, models)
    assert sorted(asked) == ["a", "b", "broken.gguf", "mtp-tuned.safetensors"]
    asked.clear()
    (models / "broken.gguf").write_bytes(b"GGUF")
    read(qtbot, catalogue, models)
    assert asked == ["broken.gguf"]


def test_a_file_that_arrives_in_a_watched_folder_appears_by_itself(
    qtbot: QtBot, catalogue: Catalogue, models: Path
) -> None:
    read(qtbot, catalogue, models)
    shutil.copytree(models / "a", models / "c")
    qtbot.waitUntil(lambda: "c" in [e.report.name for e in catalogue.entries], timeout=PATIENCE_MS)
