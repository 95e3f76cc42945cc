"""The window's words for translators: `python packaging/languages.py [CODE …]`.

Collects what `tr`, `trn` and `mark` say in app/, and the prompt library, into resources/languages/draftscope.pot.
Brings every catalogue (CODE.po) up to date with it, begins those that are named and new, and compiles each into the
CODE.mo that the program reads. Catalogues are edited with Poedit, Weblate, or any editor of gettext files.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "resources" / "languages"
TEMPLATE = "draftscope.pot"
KEYWORDS = {"tr": None, "trn": (1, 2), "mark": None}
_DATES = re.compile(rb'^"(POT-Creation-Date|PO-Revision-Date|Generated-By):.*\n', re.MULTILINE)


def collect(code: Path = ROOT / "app") -> Catalog:
    """Every text of the window, in the order of the files."""
    catalog = Catalog(project="Draftscope", charset="utf-8", fuzzy=False)
    found = extract_from_dir(code, [("**.py", "python")], keywords=KEYWORDS, comment_tags=("Translators:",))
    for file, line, text, comments, context in sorted(found, key=lambda item: (item[0], item[1])):
        catalog.add(text, locations=[(f"app/{Path(file).as_posix()}", line)], auto_comments=comments, context=context)
    for message in catalog:
        message.flags.discard("python-format")  # a per cent sign is one here: fields are in braces
    for kind, entries in json.loads((ROOT / "resources" / "prompts.json").read_text("utf-8")).items():
        for entry in entries:
            catalog.add(entry["title"], locations=[("resources/prompts.json", 1)])
            if kind != "demo":  # the demo's model knows English
                catalog.add(entry["prompt"], locations=[("resources/prompts.json", 1)])
    return catalog


def template(catalog: Catalog) -> bytes:
    """The file for translators. Places are named by file alone: a line that moves changes no text."""
    written = BytesIO()
    write_po(written, catalog, width=110, omit_header=False, include_lineno=False)
    return _DATES.sub(b"", written.getvalue())


def bring_up_to_date(folder: Path, catalog: Catalog) -> None:
    """Give every catalogue in the folder the texts of `catalog`, and compile it. Texts that changed lose their
    translation's standing (`fuzzy`) until somebody has looked at it."""
    for path in sorted(folder.glob("*.po")):
        with path.open("rb") as file:
            translated = read_po(file, locale=path.stem)
        translated.update(catalog, no_fuzzy_matching=False)
        written = BytesIO()
        write_po(written, translated, width=110, include_lineno=False)
        path.write_bytes(_DATES.sub(b"", written.getvalue()))
        path.with_suffix(".mo").write_bytes(compiled(translated))


def compiled(catalog: Catalog) -> bytes:
    """What the program reads, without texts that nobody has looked at."""
    written = BytesIO()
    write_mo(written, catalog, use_fuzzy=False)
    return written.getvalue()


def begin(folder: Path, code: str, catalog: Catalog) -> None:
    """An empty catalogue of a language, unless there is one. Raises ValueError, UnknownLocaleError."""
    Locale.parse(code)  # its plural forms have to be known
    path = folder / f"{code}.po"
    if path.exists():
        return
    new = Catalog(locale=code, project="Draftscope", charset="utf-8", fuzzy=False)
    new.update(catalog)
    with path.open("wb") as file:
        write_po(file, new, width=110, include_lineno=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="languages.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("codes", nargs="*", metavar="CODE", help="begin a translation into this language: de, pt_BR")
    arguments = parser.parse_args(argv)
    FOLDER.mkdir(exist_ok=True)
    catalog = collect()
    (FOLDER / TEMPLATE).write_bytes(template(catalog))
    try:
        for code in arguments.codes:
            begin(FOLDER, code, catalog)
    except (ValueError, UnknownLocaleError) as error:
        print(f"{error}; give a language as de or pt_BR.", file=sys.stderr)
        return 1
    bring_up_to_date(FOLDER, catalog)
    print(f"{len(catalog)} texts in {FOLDER / TEMPLATE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
