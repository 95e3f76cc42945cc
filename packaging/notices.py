"""Writes THIRD-PARTY-NOTICES.txt: what a build brings along that others made, each with its licence's text.

    python packaging/notices.py --out FILE [--bundle FOLDER]

Read from the metadata of what is installed in this environment: the distributions that Draftscope requires, and what
those require. With `--bundle`, the notices of a frozen program: only distributions of which something is in that
folder, with Python itself and PyInstaller's starter; a library or module in it that nobody here owns is an error, and
so is, in any case, a distribution without a licence text.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
TEXTS = Path(__file__).resolve().parent / "licences"
LICENCE_NAME = re.compile(r"(.*[-_. ])?(licen[cs]es?|copying|notice|copyright)([-_. ].*)?", re.IGNORECASE)
NO_TEXT = (".py", ".pyc", ".json")
ADDED = {
    "pyside6-essentials": (TEXTS / "LGPL-3.0.txt", TEXTS / "GPL-3.0.txt"),
    "shiboken6": (TEXTS / "LGPL-3.0.txt", TEXTS / "GPL-3.0.txt"),
    "tokenizers": (ROOT / "LICENSE",),
}
"""Texts for those that name their licence and leave its text out of the wheel."""
REMARKS = {
    "pyside6-essentials": (
        "Qt 6 and Qt for Python are used under the GNU Lesser General Public License, version 3. Their libraries are "
        "files of their own in this program's folder and may be replaced by changed versions of the same interface. "
        "Their source code is at https://download.qt.io/official_releases/ under the version named above."
    ),
    "llvmlite": "Contains LLVM.",
}
PYTHON_FILES = (
    "libpython3*", "python3*.dll", "Python", "*/lib-dynload/*", "vcruntime140*.dll", "msvcp140*.dll", "ucrtbase.dll",
    "api-ms-win-*.dll", "libcrypto*.dll", "libssl*.dll", "libffi*.dll", "sqlite3.dll", "*.pyd",
    "libcrypto*.dylib", "libssl*.dylib", "libncurses*.dylib", "libintl*.dylib", "liblzma*.dylib", "libsqlite3*.dylib",
)  # fmt: skip
"""What comes from Python's own installation: on Windows and macOS with libraries that its licence file covers."""
OURS = ("app", "engine", "resources", "_pyi_rth_utils")
"""Modules of this program, and of PyInstaller's starter."""
LIBRARY = re.compile(r"\.(so(\.[\d.]+)?|dylib|dll|pyd)$")
RULE = "=" * 100


class NoticesError(Exception):
    """What is missing, for the person; nothing was written."""


@dataclass(frozen=True, slots=True)
class Component:
    """Something that others made."""

    name: str
    version: str
    licence: str
    address: str
    texts: Mapping[str, str]
    """By file name."""
    remark: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the notices of what others made.")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--bundle", type=Path, help="folder of a frozen program")
    arguments = parser.parse_args()
    try:
        components = list(collect(arguments.bundle))
    except NoticesError as error:
        print(error, file=sys.stderr)
        return 1
    arguments.out.write_text(document(components), encoding="utf-8")
    print(f"{arguments.out} names {len(components)} components.")
    return 0


def collect(bundle: Path | None) -> Iterator[Component]:
    """All components, Python first."""
    distributions = required()
    if bundle is not None:
        if not bundle.is_dir():
            raise NoticesError(f"There is no folder {bundle}.")
        files = [path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()]
        if any(inside(file).startswith("engine/") for file in files):  # else modules are hidden in archives
            distributions = {name: found for name, found in distributions.items() if is_in(found, files)}
        if lost := sorted(unowned(files, distributions.values())):
            raise NoticesError(f"Nobody is known to own {', '.join(lost)}; packaging/notices.py has to name them.")
        yield python()
        yield starter()
    components = [component(name, found) for name, found in sorted(distributions.items())]
    if without := [item.name for item in components if not item.texts]:
        raise NoticesError(f"No licence text comes with {', '.join(without)}; put it into packaging/licences.")
    yield from components


def required() -> dict[str, Distribution]:
    """What pyproject.toml requires on this platform, and what that requires, by normal name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, str]] = [(text, "") for text in project["dependencies"]]
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = normal(requirement.name)
        try:
            known = name in found
            found[name] = distribution(requirement.name)
        except PackageNotFoundError:
            raise NoticesError(f"{requirement.name} is required and not installed here.") from None
        wanted = ([] if known else [""]) + sorted(requirement.extras)
        waiting += [(inner, extra) for inner in found[name].requires or () for extra in wanted]
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def component(name: str, found: Distribution) -> Component:
    """A distribution as its metadata and licence files tell it."""
    texts = {path.name: path.read_text("utf-8") for path in ADDED.get(name, ())}
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        if is_licence(file.as_posix()) and path.is_file():
            texts[file.as_posix().rsplit("/licenses/", 1)[-1]] = path.read_text("utf-8", errors="replace")
    facts = found.metadata
    stated = facts.get("License-Expression") or facts.get("License") or ""
    if not stated or "\n" in stated:  # some give the whole text here
        classifiers = facts.get_all("Classifier") or []
        stated = ", ".join(text.rsplit(" :: ", 1)[-1] for text in classifiers if text.startswith("License ::"))
    pages = [entry.split(", ", 1) for entry in facts.get_all("Project-URL") or [] if ", " in entry]
    home = next((page for title, page in pages if title.lower() in ("homepage", "home", "source")), "")
    address = facts.get("Home-page") or home or f"https://pypi.org/project/{facts['Name']}/"
    return Component(facts["Name"], found.version, stated, address, texts, REMARKS.get(name, ""))


def is_licence(path: str) -> bool:
    """Whether a file's name is that of a licence."""
    pure = PurePosixPath(path)
    return pure.suffix not in NO_TEXT and LICENCE_NAME.fullmatch(pure.name) is not None


def python() -> Component:
    """Python itself, with the libraries that its licence file covers."""
    places = (Path(sysconfig.get_path("stdlib"), "LICENSE.txt"), Path(sys.base_prefix, "LICENSE.txt"))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    debian = Path("/usr/share/doc", f"python{version}", "copyright")
    text = next((place.read_text("utf-8") for place in (*places, debian) if place.is_file()), None)
    if text is None:
        raise NoticesError(f"Python's licence text is at none of {', '.join(map(str, places))}.")
    return Component("Python", sys.version.split()[0], "PSF-2.0", "https://www.python.org/", {"LICENSE.txt": text})


def starter() -> Component:
    """The small program of PyInstaller's that starts a frozen one."""
    try:
        found = component("pyinstaller", distribution("pyinstaller"))
    except PackageNotFoundError:
        raise NoticesError("PyInstaller, whose starter is in the bundle, is not installed here.") from None
    remark = "Its starter is part of this program, under the exception that its licence makes for that."
    return Component(found.name, found.version, found.licence, found.address, found.texts, remark)


def is_in(found: Distribution, files: Iterable[str]) -> bool:
    """Whether a module or library of a distribution is in the bundle."""
    own = {stem(file.as_posix()) for file in found.files or () if ".dist-info/" not in file.as_posix()}
    return any(stem(inside(file)) in own for file in files)


def unowned(files: Iterable[str], distributions: Iterable[Distribution]) -> set[str]:
    """What is in the bundle and belongs to no distribution and not to Python: libraries, which are known by their file
    names, and modules, by the topmost name."""
    owned = [PurePosixPath(file.as_posix()) for found in distributions for file in found.files or ()]
    own = {path.name for path in owned}
    libraries = {inside(file) for file in files if LIBRARY.search(file)}
    lost = {
        library
        for library in libraries
        if PurePosixPath(library).name not in own and not any(fnmatch.fnmatch(library, name) for name in PYTHON_FILES)
    }
    known = {stem(path.parts[0]) for path in owned} | sys.stdlib_module_names | set(OURS)
    modules = {stem(PurePosixPath(inside(file)).parts[0]) for file in files if file.endswith(".pyc")}
    return lost | {name for name in modules - known if not name.startswith("_sysconfigdata_")}


def inside(file: str) -> str:
    """A path below the folder that PyInstaller puts everything into."""
    return file.removeprefix("_internal/").removeprefix("Contents/Frameworks/").removeprefix("Contents/Resources/")


def stem(file: str) -> str:
    """A module's path whether it is source or compiled."""
    return re.sub(r"\.pyc?$", "", file)


def document(components: Iterable[Component]) -> str:
    """The notices. A text that stood there already is not repeated."""
    components = list(components)
    lines = [
        "Draftscope brings along the following, made by others and used under their licences.",
        "",
        *(f"  {item.name} {item.version}: {item.licence or 'see its licence below'}" for item in components),
    ]
    seen: dict[str, str] = {}
    for item in components:
        title = f"{item.name} {item.version}"
        lines += ["", RULE, title, item.address, RULE]
        lines += ["", item.remark] if item.remark else []
        for name, text in sorted(item.texts.items()):
            plain = text.replace("\r\n", "\n").strip("\n")
            lines += ["", f"-- {name}", ""]
            lines.append(f"The same text as {seen[plain]}." if plain in seen else plain)
            seen.setdefault(plain, f"{name} of {title} above")
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n")) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
