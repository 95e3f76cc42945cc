"""What has to agree before a release, and what the release says.

python packaging/release.py check v0.1.0             fails unless version, tag, changelog and AppStream agree
python packaging/release.py notes                    the changelog's section of this version
python packaging/release.py addresses owner/name     writes the repository's addresses and pictures into the AppStream
                                                     file, for a build from that repository
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from app import APP_ID
from engine.version import __version__

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
LINUX = ROOT / "packaging" / "linux"
METAINFO = LINUX / f"{APP_ID}.metainfo.xml"
HEADING = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?\s*$", re.MULTILINE)
PICTURES = {
    "chat-light.png": "A reply whose tokens show which drafts were accepted, and the plots of its rounds",
    "chat-dark.png": "The same in dark colours",
    "memory.png": "A model that is larger than memory, and where each layer is",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One version in the changelog."""

    version: str
    date: str
    """As 2026-11-30; empty while it is not released."""
    body: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Check and describe a release.")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("check").add_argument("tag")
    actions.add_parser("notes")
    actions.add_parser("addresses").add_argument("repository", help="owner/name on GitHub")
    arguments = parser.parse_args()
    if arguments.action == "check":
        problems = disagreements(arguments.tag)
        print("\n".join(problems) or f"Everything says {__version__}.", file=sys.stderr if problems else sys.stdout)
        return 1 if problems else 0
    if arguments.action == "notes":
        print(next((section.body for section in sections() if section.version == __version__), ""))
    else:
        METAINFO.write_text(with_addresses(METAINFO.read_text("utf-8"), arguments.repository), encoding="utf-8")
    return 0


def sections(text: str | None = None) -> list[Section]:
    """The changelog's versions, newest first."""
    text = CHANGELOG.read_text("utf-8") if text is None else text
    found = list(HEADING.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [Section(m[1], m[2] or "", text[m.end() : end].strip()) for m, end in zip(found, ends, strict=True)]


def disagreements(tag: str) -> list[str]:
    """Why this is no release of that tag; empty if it is."""
    problems = []
    if tag != f"v{__version__}":
        problems.append(f"The tag is {tag} and engine/version.py says {__version__}.")
    released = next((section for section in sections() if section.version != "Unreleased"), None)
    if released is None or released.version != __version__ or not released.date:
        problems.append(f"CHANGELOG.md has no dated section [{__version__}] on top of the released ones.")
    release = ET.parse(METAINFO).find("releases/release")
    told = {} if release is None else release.attrib
    if told.get("version") != __version__:
        problems.append(f"{METAINFO.name} does not have {__version__} as its newest release.")
    elif told.get("type") == "development" or (released is not None and told.get("date") != released.date):
        problems.append(f"{METAINFO.name} does not call {__version__} released on the changelog's date.")
    for name, text in runpy.run_path(str(LINUX / "make_man.py"))["pages"]().items():
        if (LINUX / name).read_text("utf-8") != text:
            problems.append(f"{name} does not know all options; write it with packaging/linux/make_man.py.")
    return problems


def with_addresses(metainfo: str, repository: str) -> str:
    """The AppStream file with the repository's addresses and pictures, which it cannot know by itself."""
    if "<screenshots>" in metainfo:
        return metainfo
    home = f"https://github.com/{repository}"
    pictures = f"https://raw.githubusercontent.com/{repository}/v{__version__}/packaging/screenshots"
    lines = [
        f'<url type="homepage">{home}</url>',
        f'<url type="bugtracker">{home}/issues</url>',
        f'<url type="vcs-browser">{home}</url>',
        "<screenshots>",
    ]
    for number, (name, caption) in enumerate(PICTURES.items()):
        lines += [
            "  <screenshot>" if number else '  <screenshot type="default">',
            f"    <caption>{caption}</caption>",
            f'    <image type="source">{pictures}/{name}</image>',
            "  </screenshot>",
        ]
    lines.append("</screenshots>")
    added = "".join(f"  {line}\n" for line in lines)
    return metainfo.replace("  <categories>\n", f"{added}  <categories>\n", 1)


if __name__ == "__main__":
    raise SystemExit(main())
