"""What Windows shows under a program's properties, as the text that PyInstaller's `EXE(version=…)` reads.

python packaging/windows/version_info.py draftscope-cli --out build/draftscope-cli.version
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from engine.version import __version__

TEMPLATE = """\
VSVersionInfo(
  ffi=FixedFileInfo({numbers}, {numbers}, mask=0x3F, flags=0x0, OS=0x40004, fileType=0x1, subtype=0x0),
  kids=[
    StringFileInfo([StringTable("040904B0", [{strings}])]),
    VarFileInfo([VarStruct("Translation", [1033, 1200])]),
  ],
)
"""
DESCRIPTIONS = {"draftscope": "Draftscope", "draftscope-cli": "Draftscope on the command line"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a program's version resource.")
    parser.add_argument("program", choices=DESCRIPTIONS)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(version_info(arguments.program), encoding="utf-8")
    return 0


def version_info(program: str, version: str = __version__) -> str:
    """The resource of one of the two programs."""
    facts = {
        "CompanyName": "The Draftscope authors",
        "FileDescription": DESCRIPTIONS[program],
        "FileVersion": version,
        "InternalName": program,
        "LegalCopyright": "The Draftscope authors; Apache License 2.0",
        "OriginalFilename": f"{program}.exe",
        "ProductName": "Draftscope",
        "ProductVersion": version,
    }
    strings = ", ".join(f"StringStruct({name!r}, {value!r})" for name, value in facts.items())
    return TEMPLATE.format(numbers=four_numbers(version), strings=strings)


def four_numbers(version: str) -> tuple[int, int, int, int]:
    """The numbers of a version, as many as Windows wants: 1.2 becomes 1.2.0.0, and so does 1.2rc3."""
    release = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in release.group().split(".")] if release else []
    first, second, third, fourth = [*numbers, 0, 0, 0, 0][:4]
    return first, second, third, fourth


if __name__ == "__main__":
    raise SystemExit(main())
