"""Releasing: what has to agree, what the installers of other systems say, and that the workflows use what there is."""

from __future__ import annotations

import ast
import plistlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from app import APP_ID
from engine import __version__
from tests.packaging.scripts import PACKAGING, ROOT, load

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Something.

## [1.2.0] - 2026-05-06

### Added

- A thing.

## [1.1.0] - 2026-01-02

- Less.
"""


@pytest.fixture
def release() -> ModuleType:
    return load("release.py")


def test_the_changelog_is_read(release: ModuleType) -> None:
    found = release.sections(CHANGELOG)
    assert [(section.version, section.date) for section in found] == [
        ("Unreleased", ""), ("1.2.0", "2026-05-06"), ("1.1.0", "2026-01-02"),
    ]  # fmt: skip
    assert found[1].body == "### Added\n\n- A thing."


def test_the_own_changelog_has_a_section_on_top(release: ModuleType) -> None:
    first = release.sections()[0]
    assert first.version in ("Unreleased", __version__)
    assert first.body


def prepare(release: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, date: str, kind: str) -> None:
    """A changelog and an AppStream file of version 1.2.0 to be released."""
    (folder / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    released = f'<c><releases><release version="1.2.0" date="{date}"{kind}/></releases></c>'
    (folder / "metainfo.xml").write_text(released, encoding="utf-8")
    monkeypatch.setattr(release, "CHANGELOG", folder / "CHANGELOG.md")
    monkeypatch.setattr(release, "METAINFO", folder / "metainfo.xml")
    monkeypatch.setattr(release, "__version__", "1.2.0")
    monkeypatch.setattr(release, "LINUX", folder)
    (folder / "make_man.py").write_text("def pages(): return {'a.1': 'all options'}", encoding="utf-8")
    (folder / "a.1").write_text("all options", encoding="utf-8")


def test_a_release_that_agrees_passes(release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(release, tmp_path, monkeypatch, "2026-05-06", "")
    assert release.disagreements("v1.2.0") == []
    assert "The tag is v1.2.1" in release.disagreements("v1.2.1")[0]
    (tmp_path / "a.1").write_text("some options", encoding="utf-8")
    assert "a.1 does not know all options" in release.disagreements("v1.2.0")[0]


@pytest.mark.parametrize(("date", "kind"), [("2026-05-07", ""), ("2026-05-06", ' type="development"')])
def test_a_release_that_disagrees_does_not(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, date: str, kind: str
) -> None:
    prepare(release, tmp_path, monkeypatch, date, kind)
    assert len(release.disagreements("v1.2.0")) == 1


def test_addresses_are_written_once_and_pictures_are_there(release: ModuleType) -> None:
    text = release.METAINFO.read_text("utf-8")
    done = release.with_addresses(text, "owner/name")
    assert release.with_addresses(done, "owner/name") == done
    root = ET.fromstring(done)
    assert root.findtext("url[@type='homepage']") == "https://github.com/owner/name"
    images = [element.text or "" for element in root.iter("image")]
    assert len(images) == len(release.PICTURES)
    for image in images:
        assert image.startswith("https://raw.githubusercontent.com/owner/name/")
        assert (PACKAGING / "screenshots" / image.rsplit("/", 1)[-1]).is_file()


def test_windows_is_told_the_version() -> None:
    script = load("windows/version_info.py")
    ast.parse(script.version_info("draftscope-cli"))
    assert f"'FileVersion', '{__version__}'" in script.version_info("draftscope")
    assert script.four_numbers("1.2") == script.four_numbers("1.2rc3") == (1, 2, 0, 0)
    assert script.four_numbers("1.2.3.4.5") == (1, 2, 3, 4)


def test_the_windows_installer_keeps_the_persons_data() -> None:
    text = (PACKAGING / "windows" / "draftscope.iss").read_text("utf-8")
    assert "PrivilegesRequired=lowest" in text
    removed = re.findall(r'^Type: \w+; Name: "([^"]+)"', text, re.MULTILINE)
    assert set(removed) == {r"{app}\_internal", r"{localappdata}\draftscope\Cache"}
    for name in re.findall(r"^(?:LicenseFile|SetupIconFile)=(.+)$", text, re.MULTILINE):
        assert (PACKAGING / "windows" / name.replace("\\", "/")).is_file()


def test_macos_documents_have_declared_types() -> None:
    plist = load("macos/bundle.py").info_plist()
    assert plistlib.loads(plistlib.dumps(plist)) == plist
    declared = {entry["UTTypeIdentifier"] for entry in plist["UTImportedTypeDeclarations"]} | {"public.folder"}
    assert {kind for entry in plist["CFBundleDocumentTypes"] for kind in entry["LSItemContentTypes"]} == declared
    assert all(entry["LSHandlerRank"] == "Alternate" for entry in plist["CFBundleDocumentTypes"])
    rights = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert rights == {
        f"com.apple.security.cs.{name}": True for name in ("allow-jit", "allow-unsigned-executable-memory")
    }


def test_recipes_use_the_programs_id() -> None:
    assert f"id={APP_ID}" in (PACKAGING / "linux" / "appimage.sh").read_text("utf-8")
    assert f'AppUserModelID: "{APP_ID}"' in (PACKAGING / "windows" / "draftscope.iss").read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_actions_and_name_files_that_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+(\.\d+)*", comment), f"{action} needs its version as a comment"
    for name in re.findall(r"(?:python|sh|iscc \S+) (packaging[\\/][\w.\\/-]+)", text):
        assert (ROOT / name.replace("\\", "/")).is_file(), name
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
