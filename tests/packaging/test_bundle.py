"""What goes into the frozen program and its packages, and what they ask of the system."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"


@pytest.fixture(autouse=True)
def scripts_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """packaging/ is a folder of scripts that import each other by their plain names, as when they are started."""
    monkeypatch.syspath_prepend(str(PACKAGING))


READELF = """
  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x001a70 0x001a70 R   0x1000
  LOAD           {offset} 0x000000000000b000 0x000000000000b000 0x000000 0x000000 RW  0x1000
 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 2
  0x0020:   Name: GLIBC_2.34  Flags: none  Version: 3
  0x0020:   Name: GLIBCXX_3.4.99  Flags: none  Version: 4
"""


def test_needs_are_read_from_what_readelf_prints() -> None:
    import elf

    needs = elf.parse(READELF.format(offset="0x00b000"))
    assert needs == elf.Needs(frozenset({"libstdc++.so.6", "libc.so.6"}), (2, 34), True)
    assert not elf.parse(READELF.format(offset="0x00aab0")).loadable


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's libraries")
def test_needs_of_a_real_library() -> None:
    import elf

    real = next(Path(sys.prefix).rglob("_multiarray_umath*.so"))
    assert elf.is_elf(real)
    assert not elf.is_elf(Path(__file__))
    needs = elf.needs(real)
    assert "libc.so.6" in needs.libraries
    assert needs.glibc > (2,)
    assert needs.loadable


@pytest.mark.parametrize(
    ("target", "source", "kept"),
    [
        ("PySide6/Qt/lib/libQt6Core.so.6", "/venv/libQt6Core.so.6", True),
        ("libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", False),
        ("libpython3.11.so.1.0", "/lib/x86_64-linux-gnu/libpython3.11.so.1.0", True),
        ("python3.11/lib-dynload/_json.so", "/usr/lib/python3.11/lib-dynload/_json.so", True),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/venv/libqxcb.so", True),
        ("PySide6/plugins/platforms/qwindows.dll", "C:/venv/qwindows.dll", True),
        ("PySide6/Qt/plugins/platforms/libqvnc.so", "/venv/libqvnc.so", False),
        ("PySide6\\plugins\\tls\\qopenssl.dll", "C:/venv/qopenssl.dll", False),
        ("PySide6/opengl32sw.dll", "C:/venv/opengl32sw.dll", False),
        ("PySide6/Qt/translations/qtbase_de.qm", "/venv/qtbase_de.qm", True),
        ("PySide6/Qt/translations/assistant_de.qm", "/venv/assistant_de.qm", False),
        ("PySide6/translations/qt_help_de.qm", "C:/venv/qt_help_de.qm", False),
        ("resources/demo/model.safetensors", "/here/model.safetensors", True),
        ("resources/demo/scripts/train.py", "/here/train.py", False),
        ("pyqtgraph/colors/maps/CET-C1.csv", "/venv/CET-C1.csv", False),
        ("numpy-2.4.6.dist-info/METADATA", "/venv/METADATA", True),
        ("numpy-2.4.6.dist-info/direct_url.json", "/venv/direct_url.json", False),
    ],
)
def test_what_belongs_into_the_bundle(target: str, source: str, kept: bool) -> None:
    import bundle_content

    assert bundle_content.keeps((target, source, "DATA")) is kept


def test_the_command_line_starts_without_hooks_and_the_window_on_linux_too() -> None:
    import bundle_content

    entries = [
        (name, f"/there/{name}.py", "PYSOURCE") for name in ("pyiboot01", "pyi_rth_qt", "start_cli", "start_window")
    ]

    def names(start: str, platform: str) -> list[str]:
        return [entry[0] for entry in bundle_content.scripts(entries, start, platform)]

    assert names("start_cli", "win32") == ["pyiboot01", "start_cli"]
    assert names("start_window", "linux") == ["pyiboot01", "start_window"]
    assert names("start_window", "win32") == ["pyiboot01", "pyi_rth_qt", "start_window"]


def test_what_is_excluded_is_not_what_the_program_imports() -> None:
    import bundle_content

    loaded = {"app", "engine"}
    for file in (*ROOT.glob("app/**/*.py"), *ROOT.glob("engine/**/*.py")):
        loaded |= set(re.findall(r"^\s*(?:from|import) ([\w.]+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    for name in bundle_content.EXCLUDED_MODULES:
        assert not any(module == name or module.startswith(f"{name}.") for module in loaded), name


def test_libraries_that_only_dropped_ones_ask_for_are_dropped(tmp_path: Path) -> None:
    import bundle

    lib = tmp_path / "lib"
    asked = {
        tmp_path / "plugin.so": {"libCore.so"},
        lib / "libCore.so": {"libc.so.6"},
        lib / "libQuick.so": {"libQml.so", "libCore.so"},
        lib / "libQml.so": {"libCore.so"},
    }
    assert bundle.unasked(asked, lib) == {lib / "libQuick.so", lib / "libQml.so"}


def test_packages_are_named_once_and_unknown_libraries_are_told() -> None:
    import debian_depends

    assert debian_depends.packages(["libssl.so.3", "libcrypto.so.3", "libgomp.so.1.0.0"]) == [
        "libgomp1",
        "libssl3t64 | libssl3",
    ]
    with pytest.raises(debian_depends.UnknownLibraryError, match=r"libnew\.so\.9"):
        debian_depends.packages(["libz.so.1", "libnew.so.9"])


def test_templates_are_filled_completely() -> None:
    import deb

    values = {"VERSION": "1-1", "ARCHITECTURE": "amd64", "SIZE": "1", "DEPENDS": "libc6"}
    for name in ("control.in", "copyright.in"):
        assert "@" not in deb.fill(PACKAGING / "debian" / name, values).replace(deb.MAINTAINER, "")


@pytest.mark.skipif(os.name != "posix", reason="scripts of Unix")
@pytest.mark.parametrize("name", ["debian/postinst", "debian/postrm", "tarball/install.sh", "tarball/uninstall.sh"])
def test_scripts_are_understood_by_a_shell(name: str) -> None:
    subprocess.run(["sh", "-n", str(PACKAGING / name)], check=True)


def test_milestones_are_read_from_what_the_window_tells() -> None:
    import smoke_program

    told = "warning: 3 things\nfirst paint           812 ms    300 ms CPU\nmodel usable         1404 ms    700 ms CPU\n"
    assert smoke_program.milestones(told) == {"first paint": 812, "model usable": 1404}
