"""Which shared libraries of the operating system are missing on Linux, and the Debian packages that bring them.

Standard library only and no other import of the engine: the set-up script loads this file before anything is installed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SystemLibrary:
    """A shared library by the name that the loader knows, and the package of Debian and Ubuntu that holds it."""

    soname: str
    package: str


NUMBERS = (SystemLibrary("libgomp.so.1", "libgomp1"),)
"""What the compute kernels' threading layer needs."""

QT = tuple(
    SystemLibrary(soname, package)
    for soname, package in (
        ("libEGL.so.1", "libegl1"),
        ("libGL.so.1", "libgl1"),
        ("libOpenGL.so.0", "libopengl0"),
        ("libglib-2.0.so.0", "libglib2.0-0"),
        ("libgthread-2.0.so.0", "libglib2.0-0"),
        ("libfontconfig.so.1", "libfontconfig1"),
        ("libfreetype.so.6", "libfreetype6"),
        ("libdbus-1.so.3", "libdbus-1-3"),
        ("libxkbcommon.so.0", "libxkbcommon0"),
        ("libX11.so.6", "libx11-6"),
    )
)
"""What Qt's modules need to be loaded at all, also without a display."""

WINDOW = tuple(
    SystemLibrary(soname, package)
    for soname, package in (
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libxcb.so.1", "libxcb1"),
        ("libxcb-cursor.so.0", "libxcb-cursor0"),
        ("libxcb-icccm.so.4", "libxcb-icccm4"),
        ("libxcb-image.so.0", "libxcb-image0"),
        ("libxcb-keysyms.so.1", "libxcb-keysyms1"),
        ("libxcb-randr.so.0", "libxcb-randr0"),
        ("libxcb-render.so.0", "libxcb-render0"),
        ("libxcb-render-util.so.0", "libxcb-render-util0"),
        ("libxcb-shape.so.0", "libxcb-shape0"),
        ("libxcb-shm.so.0", "libxcb-shm0"),
        ("libxcb-sync.so.1", "libxcb-sync1"),
        ("libxcb-xfixes.so.0", "libxcb-xfixes0"),
        ("libxcb-xkb.so.1", "libxcb-xkb1"),
    )
)
"""What a window on an X display needs besides."""

FONTS_PACKAGE = "fonts-dejavu-core"
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")


def missing(libraries: tuple[SystemLibrary, ...]) -> tuple[SystemLibrary, ...]:
    """Those of `libraries` that cannot be loaded here. Only Linux is looked at: elsewhere Qt brings what it needs."""
    if not sys.platform.startswith("linux"):
        return ()
    return tuple(library for library in libraries if not _loads(library.soname))


def has_fonts() -> bool:
    """Is there any font file? Without one, Qt draws empty boxes."""
    if not sys.platform.startswith("linux"):
        return True
    folders = (Path(folder).expanduser() for folder in _FONT_FOLDERS)
    return any(path.suffix in {".ttf", ".otf", ".ttc", ".pfb"} for folder in folders for path in folder.rglob("*"))


def packages_for(libraries: tuple[SystemLibrary, ...]) -> tuple[str, ...]:
    """The Debian packages that bring `libraries`, each once."""
    return tuple(dict.fromkeys(library.package for library in libraries))


def install_command(packages: tuple[str, ...]) -> str:
    """The one command that installs `packages`, or a plain list where there is no apt."""
    if shutil.which("apt-get") is None:
        return f"install the libraries that Debian packages as {' '.join(packages)}"
    sudo = "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install {' '.join(packages)}"


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True
