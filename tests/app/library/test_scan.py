"""Which files below a folder are candidates."""

from __future__ import annotations

from pathlib import Path

from app.library.scan import around, candidates, stamp, usual_folders


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_folders_single_files_and_first_parts_are_candidates(tmp_path: Path) -> None:
    whole = tmp_path / "org" / "whole"
    touch(whole / "config.json", whole / "model-00001-of-00002.safetensors", whole / "model-00002-of-00002.safetensors")
    touch(whole / "mtp-tuned.safetensors", tmp_path / "one.gguf", tmp_path / "notes.txt")
    touch(tmp_path / "split-00001-of-00003.gguf", tmp_path / "split-00002-of-00003.gguf")
    touch(tmp_path / ".hidden" / "secret.gguf", tmp_path / "mmproj-one.gguf")
    found = {str(path.relative_to(tmp_path)) for path in candidates(tmp_path)}
    assert found == {
        str(Path("org", "whole")),
        str(Path("org", "whole", "mtp-tuned.safetensors")),
        "one.gguf",
        "split-00001-of-00003.gguf",
        "mmproj-one.gguf",
    }


def test_a_model_in_a_cache_of_links_is_found(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--org--m" / "blobs", tmp_path / "models--org--m" / "snapshots" / "abc"
    touch(blobs / "1f", blobs / "2e")
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to(blobs / "1f")
    (snapshot / "model.safetensors").symlink_to(blobs / "2e")
    assert candidates(tmp_path) == [snapshot]


def test_a_folder_that_is_not_there_has_none_and_a_cancelled_search_ends(tmp_path: Path) -> None:
    touch(tmp_path / "one.gguf")
    assert candidates(tmp_path / "nowhere") == []
    assert candidates(tmp_path, lambda: True) == []


def test_folders_of_other_programs_are_offered_only_where_they_exist(tmp_path: Path) -> None:
    assert usual_folders({}, tmp_path) == ()
    (tmp_path / "hf" / "hub").mkdir(parents=True)
    (tmp_path / ".lmstudio" / "models").mkdir(parents=True)
    offers = usual_folders({"HF_HOME": str(tmp_path / "hf")}, tmp_path)
    assert [offer.path for offer in offers] == [tmp_path / "hf" / "hub", tmp_path / ".lmstudio" / "models"]


def test_a_single_file_brings_what_goes_with_it_and_a_change_is_seen(tmp_path: Path) -> None:
    one, tower = tmp_path / "one.gguf", tmp_path / "mmproj-one.gguf"
    touch(one, tower, tmp_path / "two.gguf")
    assert around(one) == [one, tower]
    before = stamp(one)
    one.write_bytes(b"more")
    assert stamp(one) != before
    assert stamp(tmp_path / "nowhere") == (0.0, 0, 0)
