"""The notices of what others made: nothing that is shipped is left out, and nothing is without a licence text."""

from __future__ import annotations

from importlib.metadata import PathDistribution
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.scripts import load


@pytest.fixture
def notices() -> ModuleType:
    return load("notices.py")


def distribution(folder: Path, name: str, files: dict[str, str], requires: str = "") -> PathDistribution:
    """Something installed, as pip leaves it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    listed = {f"{info.name}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{requires}", **files}
    for path, text in listed.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in listed), encoding="utf-8")
    return PathDistribution(info)


def test_everything_that_is_required_here_has_a_text(notices: ModuleType) -> None:
    found = {notices.normal(item.name): item for item in notices.collect(None)}
    assert {"numpy", "numba", "llvmlite", "pyside6-essentials", "tokenizers", "markupsafe"} <= set(found)
    assert {"LGPL-3.0.txt", "GPL-3.0.txt"} <= set(found["pyside6-essentials"].texts)
    assert "may be replaced" in found["pyside6-essentials"].remark
    assert any("LLVM Exceptions" in text for text in found["llvmlite"].texts.values())
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in notices.python().texts["LICENSE.txt"]


def test_one_without_a_text_is_an_error(notices: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = distribution(tmp_path, "bare", {"bare.py": ""})
    monkeypatch.setattr(notices, "required", lambda: {"bare": bare})
    with pytest.raises(notices.NoticesError, match="No licence text comes with bare"):
        list(notices.collect(None))


def test_only_what_is_in_the_bundle_is_named_and_all_of_it_is_owned(
    notices: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    licence = {"used-1.0.dist-info/licenses/LICENSE": "Do as you like."}
    used = distribution(tmp_path / "site", "used", {"used/__init__.py": "", "used/fast.so": "", **licence})
    idle = distribution(tmp_path / "site", "idle", {"idle.py": "", "idle-1.0.dist-info/LICENSE": "Do nothing."})
    monkeypatch.setattr(notices, "required", lambda: {"used": used, "idle": idle})
    bundle = tmp_path / "bundle"
    for name in ("engine/chat.pyc", "used/__init__.pyc", "used/fast.so", "python3.11/lib-dynload/math.so"):
        (bundle / "_internal" / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / "_internal" / name).write_bytes(b"")
    monkeypatch.setattr(notices, "starter", notices.python)
    assert [item.name for item in notices.collect(bundle)] == ["Python", "Python", "used"]
    (bundle / "_internal" / "libstray.so.3").write_bytes(b"")
    (bundle / "_internal" / "stray").mkdir()
    (bundle / "_internal" / "stray" / "__init__.pyc").write_bytes(b"")
    with pytest.raises(notices.NoticesError, match=r"Nobody is known to own libstray\.so\.3, stray"):
        list(notices.collect(bundle))


def test_what_a_requirement_requires_is_named_too(notices: ModuleType) -> None:
    """Jinja2 is in pyproject.toml, MarkupSafe only in Jinja2's metadata."""
    assert "markupsafe" in notices.required()


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("a-1.dist-info/licenses/LICENSE", True),
        ("a-1.dist-info/LICENCE.txt", True),
        ("a-1.dist-info/licenses/LICENSE.APACHE", True),
        ("a/core/dragon4_LICENSE.txt", True),
        ("a/COPYING", True),
        ("a/NOTICE", True),
        ("a/maps/CC-BY license - applies to CET color map data.txt", True),
        ("a/licence.py", False),
        ("a/notices.json", False),
    ],
)
def test_licence_files_are_known_by_name(notices: ModuleType, path: str, is_one: bool) -> None:
    assert notices.is_licence(path) is is_one


def test_a_text_stands_there_once(notices: ModuleType) -> None:
    items = [
        notices.Component(name, "1", "MIT", "https://x", {"LICENSE": "Permission\r\nis granted.\n"}) for name in "ab"
    ]
    text = notices.document(items)
    assert text.count("Permission\nis granted.") == 1
    assert "The same text as LICENSE of a 1 above." in text
