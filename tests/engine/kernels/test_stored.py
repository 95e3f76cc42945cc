"""A compiled kernel is found again: in the chosen folder, or among those of the installation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from engine.kernels import stored
from engine.kernels.compiled import Kernel


def _double(x):  # type: ignore[no-untyped-def]
    return 2.0 * x


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of the user's."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))
    monkeypatch.setattr(stored, "installed_folder", lambda: None)
    return folder


def _run(expected_files: Path) -> list[str]:
    """Compile or load the kernel, and use it; returns the files in a folder."""
    kernel = Kernel(_double, "float64(float64)")
    assert kernel(21.0) == 42.0
    return sorted(path.name for path in expected_files.iterdir())


def test_a_kernel_is_kept_by_module_and_line_whatever_the_folder_of_the_source(own: Path) -> None:
    names = _run(own)
    line = _double.__code__.co_firstlineno
    assert len(names) == 2
    assert all(name.startswith(f"test_stored._double-{__name__}-{line}.py") for name in names)


def test_kernels_of_the_installation_are_used_and_not_copied(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(own)
    installed = shutil.move(own, tmp_path / "kernels")
    own.mkdir()
    monkeypatch.setattr(stored, "installed_folder", lambda: installed)
    assert _run(own) == []


def test_machine_code_alone_is_kept_and_runs_in_another_process(own: Path) -> None:
    """Also where the kernel calls another function and raises."""
    code = (
        "import sys; from numba.core import config; config.CACHE_DIR = sys.argv[1]\n"
        "from engine.kernels.norm import rms_norm as kernel\n"
        "import numpy as np; kernel.compile(); print(len(kernel._entry.stats.cache_hits))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(own)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert runs == ["0", "1"]
    kept = b"".join(path.read_bytes() for path in own.glob("*.nbc"))
    assert kept
    assert b"BC\xc0\xde" not in kept, "nothing to link with"


def test_what_is_damaged_is_compiled_again(own: Path) -> None:
    names = _run(own)
    for damage in (b"", b"\x80\x05", None):
        for name in names:
            path = own / name
            path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
        _run(own)
        assert all((own / name).stat().st_size > 100 for name in names if name.endswith(".nbc"))


def _loads() -> bool:
    """Whether the kernel is found and not compiled; whatever there is, it computes."""
    kernel = Kernel(_double, "float64(float64)")
    assert kernel(21.0) == 42.0
    dispatcher: Any = kernel._entry
    return bool(dispatcher.stats.cache_hits)


def test_no_damaged_byte_of_machine_code_is_run(own: Path) -> None:
    """Zeros after a power failure, single bits of a bad disk: LLVM would end the process, or it would run wrong."""
    _run(own)
    (path,) = own.glob("*.nbc")
    whole = path.read_bytes()
    assert _loads()
    for place in range(0, len(whole), len(whole) // 24):
        for damaged in (bytes([whole[place] ^ 1]), bytes(512)):
            path.write_bytes((whole[:place] + damaged + whole[place + len(damaged) :])[: len(whole)])
            if path.read_bytes() != whole:
                assert not _loads(), place
            assert _loads(), "it was replaced"
            path.write_bytes(whole)


def test_machine_code_of_another_processor_is_not_run(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two computers with one home begin at the same time: the index is of the one, the code of the other."""
    _run(own)
    (code,), (index,) = own.glob("*.nbc"), own.glob("*.nbi")
    other = code.read_bytes()
    code.unlink()
    index.unlink()
    usual = stored.StoredKernels._index_key
    monkeypatch.setattr(stored.StoredKernels, "_index_key", lambda *a: (*usual(*a), "another processor"))
    _run(own)
    assert _loads()
    code.write_bytes(other)
    assert not _loads()


def test_kernels_in_the_form_of_an_earlier_version_are_compiled_again(own: Path) -> None:
    _run(own)
    (path,) = own.glob("*.nbc")
    path.write_bytes(path.read_bytes()[4:])  # without a sum
    assert not _loads()
    assert _loads()


def test_kernels_of_other_sources_are_not_used(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(own)
    installed = shutil.move(own, tmp_path / "kernels")
    own.mkdir()
    monkeypatch.setattr(stored, "installed_folder", lambda: installed)
    monkeypatch.setattr(stored, "source_hash", lambda: "another")
    assert len(_run(own)) == 2
