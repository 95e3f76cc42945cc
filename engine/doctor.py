"""What this machine has, what is missing, and how to mend it. Imports neither Qt nor Numba."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from engine import system_libraries
from engine.kernels.cpu import configure_environment, cpu_name, features, physical_cores, threading_layer
from engine.version import __version__

State = Literal["ok", "note", "missing"]

PACKAGES = (
    "numpy", "numba", "llvmlite", "safetensors", "gguf", "tokenizers", "jinja2", "platformdirs", "psutil", "pillow",
    "PySide6-Essentials", "pyqtgraph", "Pygments", "markdown-it-py",
)  # fmt: skip
_REINSTALL = "run `make run` in the project's folder, or install Draftscope again"
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine."""

    name: str
    value: str
    state: State = "ok"
    """`note`: works, but slower or with less; `missing`: something does not work without it."""
    remedy: str = ""
    """What mends it; empty if nothing has to be mended."""


def diagnose() -> tuple[Finding, ...]:
    """All findings, in the order in which a person reads them."""
    configure_environment()
    return (
        Finding("Draftscope", __version__),
        _python(),
        *_packages(),
        *_processor(),
        *_kernels(),
        *_memory_and_disk(),
        *_window(),
    )


def _python() -> Finding:
    return Finding("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "not installed", "missing", _REINSTALL)
            continue
        if name.startswith("PySide6") and sys.version_info < (3, 12) and _at_least(version, (6, 12)):
            # That pair loses a reference to True at every signal, and aborts after some 500 of them.
            yield Finding(name, f"{version} on Python {platform.python_version()}", "missing",
                          "install PySide6-Essentials below 6.12, or use Python 3.12")  # fmt: skip
        else:
            yield Finding(name, version)


def _at_least(version: str, least: tuple[int, int]) -> bool:
    major, minor, *_ = (int(part) if part.isdigit() else 0 for part in (*version.split("."), "0"))
    return (major, minor) >= least


def _processor() -> Iterator[Finding]:
    cores = physical_cores()
    yield Finding("processor", cpu_name())
    present = features()
    if platform.machine().lower() in {"x86_64", "amd64"} and present and not {"avx2", "fma"} <= set(present):
        yield Finding(
            "vector units", " ".join(present), "note", "without AVX2 and FMA the portable kernels run: slower"
        )
    else:
        yield Finding("vector units", " ".join(present) or "not told by this system")
    yield Finding("threads", f"{cores} (physical cores that this process may use)")


def _kernels() -> Iterator[Finding]:
    layer = threading_layer()
    if layer == "workqueue":
        lacking = system_libraries.packages_for(system_libraries.missing(system_libraries.NUMBERS))
        remedy = system_libraries.install_command(lacking) if lacking else "install an OpenMP runtime"
        yield Finding("threading layer", "workqueue", "note", f"{remedy}: with OpenMP, kernels start faster")
    else:
        yield Finding("threading layer", layer)
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        yield Finding(
            "kernel cache", str(folder), "note", "make this folder writable, else kernels compile at each start"
        )
        return
    nbytes = sum(path.stat().st_size for path in folder.rglob("*.nb*"))
    yield Finding("kernel cache", f"{folder}, {nbytes / (1 << 20):.1f} MiB")


def _memory_and_disk() -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    yield Finding("memory", f"{memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB free")
    free = shutil.disk_usage(os.environ["NUMBA_CACHE_DIR"]).free
    if free < _GIB // 4:
        yield Finding("disk", f"{free / _GIB:.2f} GiB free", "note", "free some space where the kernel cache is")
    else:
        yield Finding("disk", f"{free / _GIB:.1f} GiB free where the kernel cache is")


def _window() -> Iterator[Finding]:
    lacking = system_libraries.missing((*system_libraries.QT, *system_libraries.WINDOW))
    if lacking:
        command = system_libraries.install_command(system_libraries.packages_for(lacking))
        yield Finding(
            "Qt's libraries", f"{', '.join(library.soname for library in lacking)} not found", "missing", command
        )
    else:
        yield Finding("Qt's libraries", "all found")
    if not system_libraries.has_fonts():
        command = system_libraries.install_command((system_libraries.FONTS_PACKAGE,))
        yield Finding("fonts", "none found: text would be empty boxes", "missing", command)
    yield _display()


def _display() -> Finding:
    if not sys.platform.startswith("linux"):
        return Finding("display", "the system's own")
    for variable in ("WAYLAND_DISPLAY", "DISPLAY"):
        if os.environ.get(variable):
            return Finding("display", f"{variable}={os.environ[variable]}")
    return Finding("display", "none", "note", "log in at a desktop for the window; the command line works without one")
