"""Old folders of compiled kernels go, those in use stay."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from engine.kernels import cache_folder

DAY = 86_400
NOW = 1_000 * DAY


def _folder(home: Path, name: str, days: float) -> Path:
    folder = home / name
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "kernel.nbc").write_bytes(b"code")
    os.utime(folder, (NOW - days * DAY, NOW - days * DAY))
    return folder


def test_folders_unused_for_30_days_go_but_for_the_newest_two(tmp_path: Path) -> None:
    ages = {"0-aaaaaaaaaaaa": 90, "0-bbbbbbbbbbbb": 40, "0-cccccccccccc": 35, "0-dddddddddddd": 50}
    for name, days in ages.items():
        _folder(tmp_path, name, days)
    cache_folder.prune(tmp_path, NOW)
    assert sorted(os.listdir(tmp_path)) == ["0-bbbbbbbbbbbb", "0-cccccccccccc"]


def test_folders_in_use_stay_however_many(tmp_path: Path) -> None:
    for i in range(5):
        _folder(tmp_path, f"0-{i:012x}", 29 - i)
    cache_folder.prune(tmp_path, NOW)
    assert len(os.listdir(tmp_path)) == 5


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    others = ["notes", "0-short", "0-AAAAAAAAAAAA"]
    for name in [*others, "0-aaaaaaaaaaaa", "0-bbbbbbbbbbbb", "0-cccccccccccc"]:
        _folder(tmp_path, name, 300)
    (tmp_path / "0-dddddddddddd").write_text("a file")
    (tmp_path / "0-eeeeeeeeeeee").symlink_to(tmp_path / "notes")
    cache_folder.prune(tmp_path, NOW)
    assert {*others, "0-dddddddddddd", "0-eeeeeeeeeeee"} < set(os.listdir(tmp_path))
    assert "0-cccccccccccc" not in os.listdir(tmp_path) or "0-aaaaaaaaaaaa" not in os.listdir(tmp_path)


def test_a_folder_that_is_missing_is_no_fault(tmp_path: Path) -> None:
    cache_folder.prune(tmp_path / "nowhere", NOW)


def test_taking_the_folder_marks_it_as_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder.platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path))
    folder = cache_folder.cache_folder()
    os.utime(folder, (0, 0))
    for name in ("0-aaaaaaaaaaaa", "0-bbbbbbbbbbbb", "0-cccccccccccc"):
        _folder(folder.parent, name, 999)
    assert cache_folder.cache_folder() == folder
    assert folder.stat().st_mtime > 0
    assert len(os.listdir(folder.parent)) == 2


def test_a_read_only_home_leads_to_the_same_private_folder_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "home").write_text("no folder can be made in here")
    wanted = tmp_path / "home" / "0-aaaaaaaaaaaa"
    folder = cache_folder._writable(wanted)
    assert folder == cache_folder._writable(wanted)
    assert folder.parent.stat().st_mode & 0o077 == 0
    cache_folder._remove_empty(folder)
    assert os.listdir(tmp_path) == ["home"]


def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken = tmp_path / f"draftscope-{os.getuid()}"
    taken.mkdir()
    taken.chmod(0o777)
    assert taken not in cache_folder._temporary("0-aaaaaaaaaaaa").parents


def test_kernels_beside_the_program_are_taken_from_whom_the_program_is_taken(tmp_path: Path) -> None:
    program, folder = tmp_path / "draftscope", tmp_path / "kernels"
    program.touch()
    assert _installed(program) is None
    folder.mkdir()
    assert _installed(program) == folder
    folder.chmod(0o777)
    assert _installed(program) is None


def _installed(program: Path) -> Path | None:
    cache_folder.installed_folder.cache_clear()
    return cache_folder.installed_folder(program)
