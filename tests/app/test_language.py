"""The window in another language: everything it says can be translated, and a bad catalogue does no harm."""

from __future__ import annotations

import ast
import gettext
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from PySide6.QtCore import QCoreApplication, QTranslator
from PySide6.QtWidgets import QApplication

import app as app_package
from app.language import ENGLISH, Language, Languages, mark, tr, trn
from tests.app.words import computed_texts, early_calls, untranslated

ROOT = Path(__file__).parents[2]
COMMAND_LINE = "__main__.py"  # is English, as the engine's
FILES = [path for path in sorted(Path(app_package.__file__).parent.rglob("*.py")) if path.name != COMMAND_LINE]
sys.path.insert(0, str(ROOT / "packaging"))
import languages  # noqa: E402 - packaging/ is no package


def shout(text: str) -> str:
    """A translation that keeps the fields."""
    return re.sub(r"(\{[^}]*\})|([a-z])", lambda m: m[1] or m[2].upper(), text)


def catalogue(folder: Path, code: str = "de", texts: dict[str, str] | None = None) -> Path:
    """A compiled catalogue as a translator would deliver it: `texts`, or everything shouted."""
    catalog = languages.collect() if texts is None else Catalog()
    catalog.locale = code
    for message in list(catalog):
        if message.id:
            plural = isinstance(message.id, tuple)
            message.string = tuple(shout(t) for t in message.id) if plural else shout(message.id)
    for source, translation in (texts or {}).items():
        catalog.add(source, translation)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{code}.mo"
    path.write_bytes(languages.compiled(catalog))
    return path


@pytest.fixture
def application(qapp: QApplication) -> Iterator[QApplication]:
    """The application, which speaks English again afterwards."""
    yield qapp
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()


# ---- the code


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_people_read_can_be_translated(file: Path) -> None:
    assert [str(literal) for literal in untranslated(file)] == []
    assert early_calls(file) == [], "translated before the language is known"
    assert computed_texts(file) == [], "not a literal, so no translator gets it"


def test_the_finder_finds_and_leaves_alone(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(
        '"""A docstring of words."""\n'
        "import logging\n"
        'button.setText(tr("Open a file"))\n'
        'label.setText(f"{count} tokens of text")\n'
        'title = "Library"\n'
        'good = tr("Open a file"), trn("{n} run here", "{n} runs here", 2), mark("Some words")\n'
        'key = "some_key"; style = "padding: 3px"; sql = "SELECT name FROM chats"\n'
        'logging.info("said to the log")\n'
        'names = "Not for people"  # not translated: a key\n'
    )
    assert [literal.line for literal in untranslated(file)] == [5, 4]
    file.write_text('TITLE = tr("Early words")\ndef f(a=tr("Early words")):\n    return tr("Late words")\n')
    assert sorted(early_calls(file)) == [1, 2]
    file.write_text('tr(f"{count} words")\ntr("words" + more)\ntr(KNOWN)\ntr("a" if x else "b")\n')
    assert computed_texts(file) == [1, 2]


def test_texts_and_their_fields_agree() -> None:
    """Every call gives the fields that its text names: a missing one would show at run time only."""
    for file in FILES:
        for call in (n for n in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(n, ast.Call)):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            texts = [a.value for a in call.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            given = {keyword.arg for keyword in call.keywords} | ({"n"} if name == "trn" else set())
            if name not in {"tr", "trn"} or not texts or None in given or not (call.keywords or name == "trn"):
                continue
            fields = {f for text in texts for f in re.findall(r"(?<!\{)\{(\w+)", text.replace("{{", ""))}
            assert fields <= given, f"{file}:{call.lineno}: {fields - given}"
            assert given - {"n"} <= fields, f"{file}:{call.lineno}: {given - fields} not used"


def test_the_translators_file_is_up_to_date() -> None:
    """If not: `make languages`."""
    assert (languages.FOLDER / languages.TEMPLATE).read_bytes() == languages.template(languages.collect())


def test_catalogues_that_come_along_are_compiled_and_fit(tmp_path: Path) -> None:
    for path in languages.FOLDER.glob("*.po"):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        languages.bring_up_to_date(tmp_path, languages.collect())
        assert copy.read_bytes() == path.read_bytes()
        assert copy.with_suffix(".mo").read_bytes() == path.with_suffix(".mo").read_bytes()


def test_a_translation_is_begun_and_kept_up_to_date(tmp_path: Path) -> None:
    old, new = Catalog(), Catalog()
    old.add("Open a file")
    old.add(("{n} run", "{n} runs"))
    languages.begin(tmp_path, "pl", old)
    path = tmp_path / "pl.po"
    text = path.read_text("utf-8")
    path.write_text(
        text.replace('msgid "Open a file"\nmsgstr ""', 'msgid "Open a file"\nmsgstr "Otwórz plik"'), "utf-8"
    )
    for message in old:
        if message.id:
            new.add(message.id)
    new.add("Close it")
    languages.bring_up_to_date(tmp_path, new)
    with (tmp_path / "pl.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert compiled.gettext("Open a file") == "Otwórz plik"
    assert compiled.gettext("Close it") == "Close it"
    assert text.count("msgstr[") == 3, "Polish has three forms"
    languages.begin(tmp_path, "pl", new)
    assert "Otwórz plik" in path.read_text("utf-8"), "what is there is not begun again"


# ---- the program


def test_english_without_a_catalogue(application: QApplication) -> None:
    assert tr("Open a file") == "Open a file"
    assert tr("{a} of {b:,}", a=1, b=2000) == "1 of 2,000"
    assert tr("100 % of {{this}}") == "100 % of {{this}}"
    assert [trn("{n} run", "{n} runs", n) for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert trn("{n:,} token in {name}", "{n:,} tokens in {name}", 4000, name="a") == "4,000 tokens in a"
    assert mark("Some words") == "Some words"


def test_another_language(application: QApplication, tmp_path: Path) -> None:
    catalogue(tmp_path, texts={"Open a file": "Datei öffnen", "{a} of {b}": "von {b}: {a}"})
    language = Languages(tmp_path).install(application, "de")
    assert language == Language("de", "Deutsch", tmp_path / "de.mo")
    assert tr("Open a file") == "Datei öffnen"
    assert tr("{a} of {b}", a=1, b=2) == "von 2: 1"
    assert tr("Not in it") == "Not in it"
    assert trn("{n} run", "{n} runs", 2) == "2 runs"
    assert QCoreApplication.translate("QDialog", "Open a file") == "Open a file", "Qt's own words are not ours"


def test_plural_forms_are_the_languages_own(application: QApplication, tmp_path: Path) -> None:
    catalog = Catalog(locale="pl")
    catalog.add(("{n} run", "{n} runs"), ("{n} bieg", "{n} biegi", "{n} biegów"))
    (tmp_path / "pl.mo").write_bytes(languages.compiled(catalog))
    Languages(tmp_path).install(application, "pl")
    assert [trn("{n} run", "{n} runs", n) for n in (1, 3, 5, 22)] == ["1 bieg", "3 biegi", "5 biegów", "22 biegi"]


NO_MEANING = ["{b}", "{a!x}", "{a.b.c}", "{0}", "{a", "}", "{a:q}", "{}", "{a:%d}"]
HOSTILE = ["{a.__class__}", "{a[0]}", "{a!r:>9}", "{a:99999999}", "{a:.99999999f}", "{a:999999999999}", "{a:{a}{a}{a}}"]


@pytest.mark.parametrize("text", [*NO_MEANING, *HOSTILE])
def test_a_translation_with_wrong_fields_falls_back(application: QApplication, tmp_path: Path, text: str) -> None:
    catalogue(tmp_path, texts={"{a} tokens": text})
    Languages(tmp_path).install(application, "de")
    assert tr("{a} tokens", a=3) == "3 tokens"


@pytest.mark.parametrize(
    "content",
    [b"", b"no catalogue", b"\xde\x12\x04\x95" + b"\xff" * 40, b"\xde\x12\x04\x95" + b"\0" * 10, None],
    ids=["empty", "text", "wild offsets", "cut short", "a folder"],
)
def test_a_damaged_catalogue_is_english(application: QApplication, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "de.mo"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert Languages(tmp_path).install(application, "de").code == ENGLISH
    assert tr("Open a file") == "Open a file"


def test_a_hostile_plural_rule_is_english(application: QApplication, tmp_path: Path) -> None:
    catalog = Catalog(locale="de")
    catalog.add(("{n} run", "{n} runs"), ("a", "b"))
    data = languages.compiled(catalog).replace(b"plural=(n != 1);", b"plural=9**9**9;   "[:16])
    (tmp_path / "de.mo").write_bytes(data)
    assert Languages(tmp_path).install(application, "de").code == ENGLISH


def test_fields_may_be_shown_otherwise_or_left_out(application: QApplication, tmp_path: Path) -> None:
    texts = {"{a:.2f} s of {b}": "{b:,}: {a} s", "{a} left": "nichts", "{b} {{left}}": "{{{b}}}"}
    catalogue(tmp_path, texts=texts)
    Languages(tmp_path).install(application, "de")
    assert tr("{a:.2f} s of {b}", a=1.5, b=2000) == "2,000: 1.5 s"
    assert tr("{a} left", a=3) == "nichts"
    assert tr("{b} {{left}}", b=3) == "{3}"


@pytest.mark.parametrize("rule", ["n%0", "n/(n-n)", "n-5", "n*n*n*9", "9"])
def test_a_plural_rule_that_makes_no_sense_is_english(application: QApplication, tmp_path: Path, rule: str) -> None:
    catalog = Catalog(locale="de")
    catalog.add(("{n} run", "{n} runs"), ("a", "b"))
    data = languages.compiled(catalog)
    (tmp_path / "de.mo").write_bytes(data.replace(b"plural=(n != 1);", f"plural={rule:<8};".encode()))
    assert Languages(tmp_path).install(application, "de").code == "de"
    assert [trn("{n} run", "{n} runs", n) for n in (1, 2)] == ["1 run", "2 runs"]


@pytest.mark.parametrize("code", ["en", "pl"])
def test_any_number_can_be_counted(application: QApplication, tmp_path: Path, code: str) -> None:
    catalog = Catalog(locale="pl")
    catalog.add(("{n} run", "{n} runs"), ("{n} bieg", "{n} biegi", "{n} biegów"))
    (tmp_path / "pl.mo").write_bytes(languages.compiled(catalog))
    Languages(tmp_path).install(application, code)
    for n in (2**31, 10**12 + 3, 10**30, -(2**40)):
        few = 2 <= abs(n) % 10 <= 4 and not 12 <= abs(n) % 100 <= 14
        word = "runs" if code == "en" else "biegi" if few else "biegów"
        assert trn("{n} run", "{n} runs", n) == f"{n} {word}"


def test_a_catalogue_that_would_fill_the_memory_is_english(application: QApplication, tmp_path: Path) -> None:
    """A file of a megabyte with thousands of texts that are all of that megabyte; and one that is large itself."""
    count, size = 4000, 1 << 20
    begin = 28 + 16 * count
    entries = struct.pack("<2I", size, begin) * (2 * count)
    bomb = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0) + entries + b"x" * size + b"\0"
    for data in (bomb, languages.compiled(Catalog(locale="de")) + bytes(5 << 20)):
        (tmp_path / "de.mo").write_bytes(data)
        assert Languages(tmp_path).install(application, "de").code == ENGLISH


def test_the_choice_of_a_language(tmp_path: Path) -> None:
    for code in ("de", "pt", "pt_BR", "en"):
        catalogue(tmp_path, code, {"Open": "x"})
    (tmp_path / "notes.txt").write_text("no catalogue")
    found = Languages(tmp_path)
    assert [language.code for language in found.available()] == ["en", "de", "pt", "pt_BR"]
    assert found.available()[0].catalogue is None
    assert found.choose("system", ["de-DE", "de", "en-US"]).code == "de"
    assert found.choose("system", ["pt-BR", "pt"]).code == "pt_BR"
    assert found.choose("system", ["pt-PT"]).code == "pt"
    assert found.choose("system", ["en-GB", "de-DE"]).code == ENGLISH
    assert found.choose("system", ["ja-JP"]).code == ENGLISH
    assert found.choose("pt_BR").code == "pt_BR"
    assert found.choose("xx").code == ENGLISH
    assert [language.code for language in Languages(tmp_path / "none").available()] == ["en"]
