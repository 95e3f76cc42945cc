"""Which Debian packages the shared libraries come from that the frozen program asks the system for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import elf

_GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2",
          "ld-linux")  # fmt: skip

PACKAGES: Mapping[str, str] = {
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
    "libgomp.so.1": "libgomp1",
    # What Python's modules use.
    "libcrypto.so.3": "libssl3t64 | libssl3",
    "libexpat.so.1": "libexpat1",
    "libffi.so.8": "libffi8",
    "libsqlite3.so.0": "libsqlite3-0",
    "libssl.so.3": "libssl3t64 | libssl3",
    "libz.so.1": "zlib1g",
    # What Qt uses.
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libzstd.so.1": "libzstd1",
}
"""By the name that the loader knows, as a dependency. Debian 13 and Ubuntu 24.04 have new names for what changed with
64-bit times; the older ones follow after the bar."""


class UnknownLibraryError(Exception):
    """A library is asked for that is neither in the folder nor known."""


def depends(bundle: Path) -> list[str]:
    """The dependencies of everything in a folder, in the form of a control file.

    Raises:
        UnknownLibraryError: a library has to be added to `PACKAGES`, or to the folder.
    """
    glibc, libraries = wanted(bundle)
    return [f"libc6 (>= {'.'.join(map(str, glibc))})", *packages(libraries)]


def wanted(bundle: Path) -> tuple[tuple[int, ...], set[str]]:
    """What a folder asks the system for: the C library's version, and libraries beside those of the C library."""
    found = {path: elf.needs(path) for path in elf.files(bundle)}
    shipped = {path.name for path in bundle.rglob("*") if ".so" in path.name}
    libraries = {name for needs in found.values() for name in needs.libraries if not name.startswith(_GLIBC)} - shipped
    return max(needs.glibc for needs in found.values()), libraries


def packages(libraries: Iterable[str]) -> list[str]:
    """The packages of libraries, each once, sorted."""
    known: set[str] = set()
    unknown: set[str] = set()
    for name in libraries:
        short = name.removesuffix(".0.0")  # some ask for libgomp.so.1.0.0
        if short in PACKAGES:
            known.add(PACKAGES[short])
        else:
            unknown.add(name)
    if unknown:
        raise UnknownLibraryError(
            f"The program asks for {', '.join(sorted(unknown))}; packaging/debian_depends.py has to name the packages."
        )
    return sorted(known)
