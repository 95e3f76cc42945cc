"""A folder of real checkpoints: copies of the demo with a sidecar, and a damaged file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from app.library.catalogue import Catalogue
from engine import demo_path, demo_sidecar_path


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """`a/` with a sidecar in it, `b/` without an MTP layer file beside it, and `broken.gguf`."""
    folder = tmp_path / "models"
    for name in ("a", "b"):
        shutil.copytree(demo_path(), folder / name, ignore=shutil.ignore_patterns("scripts", "mtp-*", "*.md"))
    shutil.copy(demo_sidecar_path(), folder / "a" / "mtp-tuned.safetensors")
    (folder / "broken.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(20))
    return folder


@pytest.fixture
def catalogue(qapp: QApplication) -> Iterator[Catalogue]:
    made = Catalogue(qapp)
    yield made
    made.close()
    made.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
