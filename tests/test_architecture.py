"""The way of the data, as a test: who may import whom, and the habits that keep the code readable."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 500
QT_NAMES = {"PySide6", "shiboken6", "pyqtgraph", "qtpy", "PyQt5", "PyQt6"}
NETWORK_NAMES = {"requests", "urllib", "http", "httpx", "httpx2", "huggingface_hub", "aiohttp", "ftplib"}
NETWORK_MODULES = [Path("app/library/hub/client.py"), Path("app/help/update_check.py")]
HEAVY_NAMES = {"numba", "llvmlite", "PySide6", "pyqtgraph", "tokenizers", "gguf", "jinja2"}

ENGINE = sorted((ROOT / "engine").rglob("*.py"))
APP = sorted((ROOT / "app").rglob("*.py"))
LIBRARY = [*ENGINE, *APP, *sorted((ROOT / "resources").glob("*.py"))]
ALL_PYTHON = [*LIBRARY, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "packaging").rglob("*.py"))]


def names(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """(module, imported names, line) of every import in a file, also inside functions and `if TYPE_CHECKING`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{names(path)}:{node.lineno} imports relatively; imports are absolute here"
            yield node.module or "", tuple(alias.name for alias in node.names), node.lineno


def offences(paths: list[Path], forbidden: set[str]) -> list[str]:
    return [
        f"{names(path)}:{line} imports {module}"
        for path in paths
        for module, _, line in imports(path)
        if module.split(".")[0] in forbidden and module != "urllib.parse"  # which only takes addresses apart
    ]


def test_engine_knows_neither_qt_nor_the_app() -> None:
    assert offences(ENGINE, QT_NAMES | {"app"}) == []


def test_two_modules_reach_the_network_and_import_what_they_need_for_it_when_asked() -> None:
    reaching = [ROOT / module for module in NETWORK_MODULES]
    assert set(reaching) <= set(APP)
    assert offences([path for path in [*ENGINE, *APP] if path not in reaching], NETWORK_NAMES) == []
    code = "import sys, app.library.hub.client, app.library.hub.fetch, app.help.update_check; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert {"huggingface_hub", "httpx2", "http"} & set(loaded.split()) == set()


def test_kernels_import_nothing_else_of_the_engine() -> None:
    kernels = [path for path in ENGINE if path.is_relative_to(ROOT / "engine" / "kernels")]
    assert kernels
    foreign = [
        f"{names(path)}:{line} imports {module}"
        for path in kernels
        for module, _, line in imports(path)
        if module.split(".")[0] in {"engine", "app", "resources"} and not (module + ".").startswith("engine.kernels.")
    ]
    assert foreign == []


def test_app_imports_only_public_names_of_the_engine() -> None:
    public = public_names()
    wrong = []
    for path in APP:
        for module, imported, line in imports(path):
            if module.split(".")[0] == "engine" and module != "engine":
                wrong.append(f"{names(path)}:{line} imports {module}; only names of `engine` itself are public")
            elif module == "engine":
                wrong += [f"{names(path)}:{line} imports engine.{n}, not public" for n in set(imported) - public]
    assert wrong == []


def public_names() -> set[str]:
    import engine

    return set(engine.__all__)


def test_public_names_exist() -> None:
    import engine

    assert [name for name in engine.__all__ if not hasattr(engine, name)] == []


@pytest.mark.parametrize("module", ["engine", "engine.cli", "engine.cli.main"])
def test_import_is_lean(module: str) -> None:
    """Start-up must not pay for kernels, tokenizers or a window that a command may not need."""
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert HEAVY_NAMES & set(loaded.split()) == set()


def test_files_stay_short() -> None:
    lengths = {names(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ALL_PYTHON}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_library_code_does_not_print() -> None:
    """Only the command line talks to stdout; the engine yields records and the app has a message area."""
    printing = [
        f"{names(path)}:{node.lineno}"
        for path in LIBRARY
        if not path.is_relative_to(ROOT / "engine" / "cli")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_every_module_says_what_it_is() -> None:
    without = [
        names(path)
        for path in LIBRARY
        if (text := path.read_text(encoding="utf-8")).strip() and ast.get_docstring(ast.parse(text)) is None
    ]
    assert without == []


MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|Users|work|tmp)/\w")


def test_no_machine_paths() -> None:
    """Nothing that is committed names a folder of the machine that it was written on."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file() or path.stat().st_size > 1_000_000:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{name}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{names(path)}:{number}"
        for path in [*LIBRARY, *sorted((ROOT / "packaging").rglob("*.py"))]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []
