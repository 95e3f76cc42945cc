"""What Linux desktops are told: one id everywhere, valid files, manual pages that know all options."""

from __future__ import annotations

import argparse
import configparser
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import APP_ID
from app.__main__ import make_parser
from engine import TraceHeader, TraceWriter, __version__
from engine.cli.main import make_parser as make_cli_parser
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
    "command", [["desktop-file-validate", str(DESKTOP)], ["appstreamcli", "validate", "--no-net", str(METAINFO)]]
)
def test_checkers_are_content(command: list[str]) -> None:
    checked(command)


def checked(command: list[str]) -> None:
    """Run a checker, which may neither fail nor warn."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "MANROFFSEQ": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "warning" not in result.stderr


def test_manual_pages_know_all_options(tmp_path: Path) -> None:
    pages = load("linux/make_man.py").pages()
    assert set(pages) == {"draftscope.1", "draftscope-cli.1"}
    window, terminal = make_parser(), make_cli_parser()
    for name, parsers in (("draftscope.1", [window]), ("draftscope-cli.1", [terminal, *commands(terminal)])):
        page = pages[name].replace("\\-", "-")
        wanted = {option for parser in parsers for action in parser._actions for option in action.option_strings}
        assert {option for option in wanted - {"-h", "--help"} if f"\\fB{option}\\fR" not in page} == set()
        (tmp_path / name).write_text(pages[name], encoding="utf-8")
        checked(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(tmp_path / name)])


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands, and of theirs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands(command)


FAKE_TOOL = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
cp -RP "$1" "$2.AppDir" && touch "$2"
"""
"""In place of appimagetool: keeps the folder that it would pack."""


def test_the_appimage_folder_is_complete_and_starts_both_programs(tmp_path: Path) -> None:
    bundle = tmp_path / "a bundle"
    bundle.mkdir()
    for name in ("draftscope", "draftscope-cli"):
        (bundle / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (bundle / name).chmod(0o755)
    tool = tmp_path / "appimagetool"
    tool.write_text(FAKE_TOOL)
    tool.chmod(0o755)
    environment = {
        "PATH": "/usr/bin:/bin",
        "APPIMAGETOOL": str(tool),
        "BUNDLE": str(bundle),
        "OUT": str(tmp_path / "out"),
    }
    command = ["sh", str(LINUX / "appimage.sh"), "1.2.3"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert re.fullmatch(r".*/draftscope-1\.2\.3-\w+\.AppImage", made)
    folder = Path(f"{made}.AppDir")
    for name in (f"{APP_ID}.desktop", f"{APP_ID}.png", ".DirIcon"):
        assert (folder / name).is_file(), "links lead to what is there"
    assert (folder / "usr/share/metainfo" / METAINFO.name).is_file()
    for arguments, started in ((["a.gguf"], "draftscope a.gguf"), (["--cli", "doctor"], "draftscope-cli doctor")):
        said = subprocess.run([folder / "AppRun", *arguments], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == started
