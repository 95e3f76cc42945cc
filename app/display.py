"""Can a window be opened here? Qt aborts the process if not, so this is asked before Qt is imported."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping

TERMINAL = 'python -m engine generate demo --prompt "What is the capital of France?"'  # not translated: a command
NO_SCREEN = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")
LIBRARIES = (
    ("libEGL.so.1", "libegl1"),
    ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
    ("libxcb-cursor.so.0", "libxcb-cursor0"),
    ("libxcb-icccm.so.4", "libxcb-icccm4"),
    ("libxcb-keysyms.so.1", "libxcb-keysyms1"),
    ("libxcb-image.so.0", "libxcb-image0"),
    ("libxcb-render-util.so.0", "libxcb-render-util0"),
)
"""System libraries that Qt's window on X11 needs and a bare system lacks, with their Debian packages."""


def display_problem(
    environ: Mapping[str, str], platform: str = sys.platform, load: Callable[[str], object] = ctypes.CDLL
) -> str:
    """Why no window can be opened, in one sentence; empty if one can."""
    if not platform.startswith("linux") or environ.get("QT_QPA_PLATFORM", "").split(":")[0] in NO_SCREEN:
        return ""
    display = environ.get("DISPLAY", "")
    if not display and not environ.get("WAYLAND_DISPLAY"):
        return f"There is no display to open a window on; on the terminal, try: {TERMINAL}"  # not translated: before Qt
    if environ.get("WAYLAND_DISPLAY"):
        return ""
    missing = [package for name, package in LIBRARIES if not _loads(name, load)]
    if missing:
        packages = " ".join(missing)
        install = f"sudo apt install {packages}"  # not translated: a command
        return f"Qt's system libraries are missing; install them with: {install}"  # not translated: before Qt
    if not _answers(load):
        return f"The display {display} does not answer; on the terminal, try: {TERMINAL}"  # not translated: before Qt
    return ""


def _loads(name: str, load: Callable[[str], object]) -> bool:
    try:
        load(name)
    except OSError:
        return False
    return True


def _answers(load: Callable[[str], object]) -> bool:
    """Whether the X server lets us in; true if that cannot be found out."""
    try:
        xcb = load("libxcb.so.1")
    except OSError:
        return True
    connect, failed, disconnect = (
        getattr(xcb, f"xcb_{name}") for name in ("connect", "connection_has_error", "disconnect")
    )
    connect.restype = ctypes.c_void_p
    failed.argtypes = disconnect.argtypes = [ctypes.c_void_p]
    connection = connect(None, None)
    error = failed(connection)
    disconnect(connection)
    return not error
