"""The page cache: what was just written is there, and is gone once it was dropped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.page_cache import cached_share, drop


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mincore is asked on Linux only")
def test_a_dropped_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3_000_001)
    assert cached_share(path) == 1.0
    drop(path)
    assert cached_share(path) == 0.0
    path.read_bytes()
    assert cached_share(path) == 1.0


def test_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    drop(path)
    assert cached_share(path) is None
