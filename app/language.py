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
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

_CONTEXT = "draftscope"
_BETWEEN = "\x1f"
"""Between the singular and the plural where Qt has room for one text."""
SYSTEM = "system"
ENGLISH = "en"
FOLDER = "languages"
"""Beside the settings: catalogues that a person adds."""


def tr(text: str, **values: object) -> str:
    """`text` in the person's language, its `{name}` fields filled with `values`. `text` is a literal."""
    return _filled(QCoreApplication.translate(_CONTEXT, text), text, values)


def trn(one: str, many: str, n: int, **values: object) -> str:
    """The same for something counted: `one` where the language has its singular, else `many`; `{n}` is the count."""
    english = one if n == 1 else many
    found = QCoreApplication.translate(_CONTEXT, english, f"{one}{_BETWEEN}{many}", abs(n))
    return _filled(found, english, {"n": n, **values})


def mark(text: str) -> str:
    """`text` itself: a literal that `tr` gets later, for tables that are made before the language is known."""
    return text


def _filled(found: str, english: str, values: Mapping[str, object]) -> str:
    if not values:
        return found
    try:
        return found.format(**values)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # a fault of the catalogue
        return english.format(**values)


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
            with language.catalogue.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)
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
        if n >= 0 and disambiguation:
            one, _, many = disambiguation.partition(_BETWEEN)
            return self._catalogue.ngettext(one, many, n)
        return self._catalogue.gettext(text)


def _name(code: str) -> str:
    """`code` for people."""
    locale = QLocale(code)
    return locale.nativeLanguageName() if locale.language() != QLocale.Language.C else code
