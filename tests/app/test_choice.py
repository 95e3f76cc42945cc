"""What may be dropped or chosen, and how it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.library.choice import Choice, classify, facts, recent_label, size_text
from app.settings import RecentModel
from tests.app.scripted import model_info


def test_a_folder_or_a_weights_file_is_a_checkpoint(tmp_path: Path) -> None:
    assert classify([tmp_path]) == Choice(model=tmp_path)
    for name in ("model.safetensors", "Qwen3.5-4B-Q4_K_M.GGUF"):
        assert classify([tmp_path / name]) == Choice(model=tmp_path / name)


def test_a_sidecar_is_known_by_its_name_alone_or_beside_a_checkpoint(tmp_path: Path) -> None:
    sidecar = tmp_path / "mtp-sidecar.safetensors"
    assert classify([sidecar]) == Choice(sidecar=sidecar)
    assert classify([sidecar, tmp_path]) == Choice(model=tmp_path, sidecar=sidecar)


def test_a_folder_named_like_a_sidecar_is_a_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "mtp-7b"
    folder.mkdir()
    assert classify([folder]) == Choice(model=folder)


def test_anything_else_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert classify([tmp_path / "notes.txt"]).problem.startswith("notes.txt is no model")
    assert "one checkpoint at a time" in classify([tmp_path / "a.gguf", tmp_path / "b.gguf"]).problem


def test_a_missing_recent_model_is_marked(tmp_path: Path) -> None:
    assert recent_label(RecentModel(str(tmp_path))) == tmp_path.name
    assert recent_label(RecentModel(str(tmp_path / "gone"))) == "gone (missing)"
    assert recent_label(RecentModel(str(tmp_path), "/x/mtp.safetensors")).endswith("+ mtp.safetensors (missing)")


def test_the_facts_of_a_model_fit_a_line() -> None:
    info = model_info(Path("/m"), Path("/s/mtp-x.safetensors"), architecture="qwen3_5_moe", parameters=35_100_000_000)
    assert facts(info) == "mixture of experts · 8 layers · 35.1 B parameters · 13.6 MiB · MTP from mtp-x.safetensors"


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (2048, "2.0 KiB"), (3 * 1024**3, "3.0 GiB")])
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text
