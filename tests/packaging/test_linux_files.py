"""What Linux desktops are told: one id everywhere, valid files, manual pages that know all options."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from app import APP_ID
from app.__main__ import make_parser
from engine import TraceHeader, TraceWriter, __version__
from tests.packaging.scripts import PACKAGING, load

LINUX = PACKAGING / "linux"
DESKTOP = LINUX / f"{APP_ID}.desktop"
METAINFO = LINUX / f"{APP_ID}.metainfo.xml"
MIME = LINUX / f"{APP_ID}.mime.xml"


def desktop() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their capitals
    parser.read(DESKTOP, encoding="utf-8")
    return parser


def mime_types() -> dict[str, ET.Element]:
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    return {element.attrib["type"]: element for element in ET.parse(MIME).iter(f"{space}mime-type")}


def test_the_desktop_file_starts_what_there_is() -> None:
    entry = desktop()["Desktop Entry"]
    assert entry["Icon"] == entry["StartupWMClass"] == APP_ID
    assert set(filter(None, entry["MimeType"].split(";"))) == set(mime_types())
    parser = make_parser()
    for name in filter(None, entry["Actions"].split(";")):
        program, *arguments = shlex.split(desktop()[f"Desktop Action {name}"]["Exec"])
        assert program == "draftscope"
        parser.parse_args(arguments)
    assert entry["Exec"] == "draftscope %F"
    assert parser.parse_args(["a.gguf", "b.jsonl"]).files == [Path("a.gguf"), Path("b.jsonl")]


def test_appstream_agrees_with_program_and_desktop_file() -> None:
    root = ET.parse(METAINFO).getroot()
    assert root.findtext("id") == root.findtext("icon") == APP_ID
    assert root.findtext("launchable") == DESKTOP.name
    release = root.find("releases/release")
    assert release is not None
    assert release.attrib["version"] == __version__
    assert {element.text for element in root.iter("mediatype")} == set(mime_types())


def test_a_run_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    """Its name ends like many others': the magic must be what the program really writes."""
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    match = mime_types()["application/vnd.draftscope.run"].find(f"{space}magic/{space}match")
    assert match is not None
    header = TraceHeader(draftscope=__version__, created="2026-11-30T12:00:00+00:00", model="demo")
    with TraceWriter(tmp_path / "run.jsonl", header):
        pass
    assert (tmp_path / "run.jsonl").read_text("utf-8").startswith(match.attrib["value"])


@pytest.mark.parametrize(
    "command",
    [
        ["desktop-file-validate", str(DESKTOP)],
        ["appstreamcli", "validate", "--no-net", str(METAINFO)],
        *(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(LINUX / page)] for page in
          ("draftscope.1", "draftscope-cli.1")),
    ],
)  # fmt: skip
def test_checkers_are_content(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "MANROFFSEQ": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "warning" not in result.stderr


def test_manual_pages_know_all_options() -> None:
    """`python packaging/linux/make_man.py` brings them up to date."""
    pages = load("linux/make_man.py").pages()
    assert {name: (LINUX / name).read_text("utf-8") for name in pages} == pages
