"""What the frozen program holds and what stays out. Plain data and pure functions: the spec file applies them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from pathlib import PurePosixPath

Entry = tuple[str, str, str]
"""A file as PyInstaller lists it: (place in the bundle, place on this machine, kind)."""

HIDDEN = (
    "numba._devicearray",
    "huggingface_hub.errors", "huggingface_hub.hf_api", "huggingface_hub.utils._auth",
    "huggingface_hub.utils._headers", "huggingface_hub.utils._http",
)  # fmt: skip
"""Modules that are imported by name at run time, which no analysis sees."""

EXCLUDED_MODULES = (
    # Parts of others that ours never calls, and what they would use if it were there.
    "IPython", "OpenGL", "_cffi_backend", "_pytest", "anyio.pytest_plugin", "backports", "cffi", "chardet",
    "cryptography", "cupy", "defusedxml", "docutils", "fsspec", "h5py", "hf_xet", "hypothesis", "lxml", "matplotlib",
    "pytest", "requests", "rich", "scipy", "torch", "typer",
    "numba.cuda", "numba.pycc", "numba.testing", "numba.tests", "numpy.f2py", "numpy.testing", "pyqtgraph.examples",
    "pyqtgraph.opengl", "yaml._yaml",
    "PySide6.QtPrintSupport", "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtTest",
    "PIL._avif", "PIL._imagingcms", "PIL._imagingft", "PIL._imagingtk",
    # Python's own for terminals and developers.
    "_bz2", "_curses", "_lzma", "_tkinter", "_uuid", "bz2", "curses", "doctest", "ensurepip", "lib2to3", "lzma", "pip",
    "pkg_resources", "pydoc_data", "readline", "setuptools", "test", "tkinter", "wheel", "xmlrpc",
)  # fmt: skip

_PLUGINS = "PySide6/plugins/"
_TRANSLATIONS = "PySide6/translations/"
KEPT_PLUGINS = (
    "iconengines/*",
    "imageformats/*qgif*", "imageformats/*qico*", "imageformats/*qjpeg*", "imageformats/*qsvg*",
    "imageformats/*qtiff*", "imageformats/*qwebp*",
    "platforminputcontexts/*compose*", "platforminputcontexts/*ibus*",
    "platforms/*qcocoa*", "platforms/*qoffscreen*", "platforms/*qwayland*", "platforms/*qwindows*", "platforms/*qxcb*",
    "platformthemes/*xdgdesktopportal*",
    "styles/*",
    "wayland-decoration-client/*", "wayland-graphics-integration-client/*wayland-egl*",
    "wayland-shell-integration/*xdg-shell*",
    "xcbglintegrations/*",
)  # fmt: skip
"""Of Qt's plugins: a window on X, Wayland, Windows and macOS, and one without a display; pictures; input methods."""

KEPT_TRANSLATIONS = ("qtbase_*",)
"""Qt's own words, for a window in another language than English."""

DROPPED = (
    "PySide6/qml/*",
    "PySide6/opengl32sw.dll",  # on Windows: draws what nothing here asks for
    "*/tbbpool.*",  # Numba's layer for a library that is not shipped
    "resources/demo/scripts/*",  # how the demo model was made
    "pyqtgraph/colors/maps/*",  # plots have the window's colours
    "pyqtgraph/icons/peegee/*.png",
    "*.pyi", "*/py.typed",
)  # fmt: skip

_SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
_PYTHON = ("libpython3*", "python3*/lib-dynload/*")
"""What is Python itself, which may be the system's own."""


def keeps(entry: Entry) -> bool:
    """Whether a file belongs into the bundle.

    Nothing of the build machine's own libraries does but Python: a copy of, say, libstdc++ would be loaded before the
    one that the user's graphics driver was built for. They are dependencies of the package instead.
    """
    target, source, _ = entry
    target = PurePosixPath(target.replace("\\", "/")).as_posix()
    if source.startswith(_SYSTEM_FOLDERS) and not _matches(target, _PYTHON):
        return False
    if ".dist-info/" in target:
        return target.endswith("/METADATA")  # tells the version; licences go into the notices
    target = target.replace("PySide6/Qt/", "PySide6/", 1)  # Windows has one folder fewer
    if target.startswith(_PLUGINS):
        return _matches(target.removeprefix(_PLUGINS), KEPT_PLUGINS)
    if target.startswith(_TRANSLATIONS):
        return _matches(target.removeprefix(_TRANSLATIONS), KEPT_TRANSLATIONS)
    return not _matches(target, DROPPED)


def kept(entries: Iterable[Entry]) -> list[Entry]:
    """The files of a list that belong into the bundle, in a fixed order."""
    return sorted(entry for entry in entries if keeps(entry))


def scripts(entries: Iterable[Entry], start: str, platform: str) -> list[Entry]:
    """What a program runs when it starts: PyInstaller's loader, and ours.

    PyInstaller's hooks for packages import Qt, and half of Python, before the first line of ours: 0.15 s that the
    command line would wait for a library that it never uses. On Linux Qt finds its plugins without them.
    """
    no_hooks = platform == "linux" or start == "start_cli"
    ours = [entry for entry in entries if not entry[0].startswith("start_") or entry[0] == start]
    return [entry for entry in ours if not (no_hooks and entry[0].startswith("pyi_rth_"))]


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
