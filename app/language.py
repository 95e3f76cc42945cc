"""What the window says, in the person's language: gettext catalogues behind Qt's translation mechanism.

English stands in the code. `tr` and `trn` ask the catalogue that `Languages.install` gave to the application, so which
language it is belongs to the application and not to a module. Qt's own words (buttons of dialogs) come along where the
Qt in use has them. What the engine says, such as what is wrong with a file, is English.
"""

from __future__ import annotations

import gettext
import logging
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from string import Formatter

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

_CONTEXT = "draftscope"
_BETWEEN = "\x1f"
"""Between the singular and the plural where Qt has room for one text."""
SYSTEM = "system"
ENGLISH = "en"
FOLDER = "languages"
"""Beside the settings: catalogues that a person adds."""
_MOST_BYTES = 4 << 20
"""Of a catalogue; one of everything that the window says is a twentieth of it."""
_MOST_COUNT = (1 << 31) - 1
"""The most that Qt can count."""


def tr(text: str, **values: object) -> str:
    """`text` in the person's language, its `{name}` fields filled with `values`. `text` is a literal."""
    return _filled(QCoreApplication.translate(_CONTEXT, text), text, values, text)


def trn(one: str, many: str, n: int, **values: object) -> str:
    """The same for something counted: `one` where the language has its singular, else `many`; `{n}` is the count."""
    english = one if n == 1 else many
    both, count = f"{one}{_BETWEEN}{many}", abs(n)
    if count > _MOST_COUNT:
        count = 1_000_000 + count % 1_000_000  # the plural is the same: no language looks at other digits
    return _filled(QCoreApplication.translate(_CONTEXT, english, both, count), english, {"n": n, **values}, both)


def mark(text: str) -> str:
    """`text` itself: a literal that `tr` gets later, for tables that are made before the language is known."""
    return text


def _filled(found: str, english: str, values: Mapping[str, object], known: str) -> str:
    """`found` with its fields filled. If it has others than stand in `known`, or they are no good, `english` is."""
    if not values:
        return found
    if found == english or _fits(found, known):
        try:
            return found.format(**values)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # a fault of the catalogue
            pass
    return english.format(**values)


@lru_cache(maxsize=4096)
def _fits(found: str, known: str) -> bool:
    """Whether the fields of `found` are such of `known`, shown as these or plainly. Others could look into the values,
    or fill the memory: `{n:999999999}`."""
    try:
        fields = [field for field in Formatter().parse(found) if field[1] is not None]
    except ValueError:
        return False
    expected = list(Formatter().parse(known))
    names, formats = {field[1] for field in expected}, {"", ",", *(field[2] for field in expected)}
    return all(name in names and how in formats and not kind for _, name, how, kind in fields)


@dataclass(frozen=True, slots=True)
class Language:
    """A language that can be chosen."""

    code: str
    """As `de` or `pt_BR`."""
    name: str
    """In the language itself."""
    catalogue: Path | None
    """None needs no catalogue."""


class Languages:
    """The catalogues that come along and those in a person's own folder, which come first."""

    def __init__(self, own: Path) -> None:
        """`own` is a folder that need not exist."""
        self.own = own

    def available(self) -> tuple[Language, ...]:
        """English first, the others by code."""
        found: dict[str, Path] = {}
        with_program = Path(str(files("resources"))) / FOLDER
        for folder in (with_program, self.own):
            try:
                found |= {path.stem: path for path in sorted(folder.glob("*.mo")) if path.is_file()}
            except OSError:
                continue
        found.pop(ENGLISH, None)
        others = (Language(code, _name(code), found[code]) for code in sorted(found))
        return (Language(ENGLISH, "English", None), *others)  # not translated: each by its own name

    def choose(self, wanted: str, system: Sequence[str] | None = None) -> Language:
        """The language `wanted` (a code or `system`); English where there is none such. `system` as Qt lists them."""
        languages = {language.code: language for language in self.available()}
        codes = (system if system is not None else QLocale.system().uiLanguages()) if wanted == SYSTEM else [wanted]
        for code in (code.replace("-", "_") for code in codes):
            for candidate in (code, code.partition("_")[0]):
                if candidate in languages:
                    return languages[candidate]
        return languages[ENGLISH]

    def install(self, app: QCoreApplication, wanted: str) -> Language:
        """Have the application speak the language; returns it. One whose catalogue cannot be read becomes English."""
        language = self.choose(wanted)
        if language.catalogue is None:
            return language
        try:
            catalogue = _read(language.catalogue)
        except (OSError, ValueError, KeyError, LookupError, struct.error) as error:
            logging.getLogger("draftscope").warning("%s is no catalogue: %s", language.catalogue, error)
            return self.available()[0]
        words = QTranslator(app)
        if words.load(f"qtbase_{language.code}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
            app.installTranslator(words)
        app.installTranslator(Catalogue(catalogue, app))
        return language


class Catalogue(QTranslator):
    """A gettext catalogue as Qt asks for it."""

    def __init__(self, catalogue: gettext.NullTranslations, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._catalogue = catalogue

    def isEmpty(self) -> bool:
        """Qt leaves out translators that are."""
        return False

    def translate(self, context: str, text: str, disambiguation: str | None = None, n: int = -1) -> str | None:
        """None is Qt's word for "ask the next one"."""
        if context != _CONTEXT or not text:
            return None
        if n < 0 or not disambiguation:
            return self._catalogue.gettext(text)
        one, _, many = disambiguation.partition(_BETWEEN)
        try:
            return self._catalogue.ngettext(one, many, n)
        except ArithmeticError:  # a plural rule that divides by nothing
            return None


def _read(path: Path) -> gettext.GNUTranslations:
    """The catalogue in a file; whatever is in there, it takes little memory.

    Raises:
        OSError, ValueError, KeyError, LookupError, struct.error: it cannot be read, or is none.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("it is too large")  # not translated: for the log
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, *tables = struct.unpack_from(f"{order}3I", data, 8)
    texts = [length for table in tables for length in struct.unpack_from(f"{order}{2 * count}I", data, table)[::2]]
    if sum(texts) > len(data):
        raise ValueError("its texts lie one upon the other")  # not translated: for the log
    return gettext.GNUTranslations(BytesIO(data))


def _name(code: str) -> str:
    """`code` for people."""
    locale = QLocale(code)
    return locale.nativeLanguageName() if locale.language() != QLocale.Language.C else code
