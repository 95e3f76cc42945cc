"""`make run`: the window on the demo checkpoint, or the same job on the terminal where there is no display."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from engine import system_libraries

PROMPT = "What is the capital of France?"


def main() -> int:
    reason = why_no_window()
    if reason is None:
        return start("app", "--model", "demo")
    print(f"{reason}; here is the same job on the terminal.", flush=True)
    return start("engine", "generate", "demo", "--prompt", PROMPT)


def start(package: str, *arguments: str) -> int:
    try:
        return subprocess.run([sys.executable, "-m", package, *arguments], check=False).returncode
    except KeyboardInterrupt:
        return 130


def why_no_window() -> str | None:
    """None if a window can be opened, else the reason."""
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return None
    if not (wayland_answers() or x_answers()):
        return "There is no display"
    lacking = system_libraries.missing((*system_libraries.QT, *system_libraries.WINDOW))
    if lacking:
        return f"Qt lacks libraries ({system_libraries.install_command(system_libraries.packages_for(lacking))})"
    return None


def wayland_answers() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    return bool(name) and (Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")) / str(name)).is_socket()


def x_answers() -> bool:
    """Does an X server accept a connection? A stale DISPLAY would make Qt abort."""
    if not os.environ.get("DISPLAY"):
        return False
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True  # cannot ask; the library check says what to install
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    answers = xcb.xcb_connection_has_error(connection) == 0
    xcb.xcb_disconnect(connection)
    return answers


if __name__ == "__main__":
    sys.exit(main())
