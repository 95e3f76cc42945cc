"""Prepares `.venv` with the pinned dependencies and checks the system libraries. Standard library only.

    python packaging/bootstrap.py [--dev]

`--dev` also installs what the tests need. A stamp in `.venv` makes the next start do nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "draftscope-stamp"
LOCKS = {False: ROOT / "requirements.lock", True: ROOT / "requirements-dev.lock"}


class SetupError(Exception):
    """A sentence for the person; the set-up cannot go on."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Prepare .venv for Draftscope.")
    parser.add_argument("--dev", action="store_true", help="also install what the tests and checks need")
    arguments = parser.parse_args()
    try:
        prepare(arguments.dev)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def prepare(dev: bool) -> None:
    """Bring system libraries and `.venv` to what the lock files say."""
    fingerprint = make_fingerprint()
    if is_stamped(fingerprint, dev):
        return
    complete = provide_system_libraries(required=dev)
    if not venv_works():
        make_venv()
    install(dev)
    if complete:  # else the next start looks at the system libraries again
        STAMP.write_text(f"{fingerprint} {'dev' if dev else 'run'}")


def make_fingerprint() -> str:
    """A digest of everything that decides what `.venv` holds, its place included: an environment cannot be moved."""
    digest = hashlib.sha256(f"{ROOT}\n{sys.version_info[:2]}\n".encode())
    for path in (*LOCKS.values(), ROOT / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_stamped(fingerprint: str, dev: bool) -> bool:
    """Is `.venv` already as wanted? One that was made for the tests serves for running, too."""
    try:
        stamp = STAMP.read_text(errors="replace")
    except OSError:
        return False
    return stamp in ({f"{fingerprint} dev"} if dev else {f"{fingerprint} dev", f"{fingerprint} run"})


# -- system libraries --------------------------------------------------------------------------------------------------


def provide_system_libraries(required: bool) -> bool:
    """Install missing libraries as root on apt systems, otherwise say the command that does.

    Returns whether nothing is missing. With `required`, a library without which no test can run stops the set-up.
    """
    libraries = system_libraries()
    packages = missing_packages(libraries)
    if packages and may_use_apt():
        print(f"Installing system libraries: {' '.join(packages)}", flush=True)
        apt_install(packages)
        packages = missing_packages(libraries)
    if not packages:
        return True
    message = f"System libraries are missing; to get them: {libraries.install_command(packages)}"
    if required and libraries.missing((*libraries.NUMBERS, *libraries.QT)):
        raise SetupError(message)
    print(message, file=sys.stderr)
    return False


def missing_packages(libraries: ModuleType) -> tuple[str, ...]:
    absent = libraries.missing((*libraries.NUMBERS, *libraries.QT, *libraries.WINDOW))
    fonts = () if libraries.has_fonts() else (libraries.FONTS_PACKAGE,)
    return (*libraries.packages_for(absent), *fonts)


def system_libraries() -> ModuleType:
    """The engine's own table, loaded as a lone file because the engine's dependencies are not installed yet."""
    spec = importlib.util.spec_from_file_location("system_libraries", ROOT / "engine" / "system_libraries.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def may_use_apt() -> bool:
    return shutil.which("apt-get") is not None and hasattr(os, "geteuid") and os.geteuid() == 0


def apt_install(packages: tuple[str, ...]) -> None:
    """Install with apt-get; a failure is left to the check that follows, which says what is still missing."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", *command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
        )


# -- the virtual environment -------------------------------------------------------------------------------------------


def venv_python() -> Path:
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def venv_works() -> bool:
    """Is there an environment with pip, of this Python's version?"""
    check = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
    try:
        return subprocess.run([venv_python(), "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    provide_ensurepip()
    print(f"Making .venv with Python {sys.version.split()[0]}", flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False)
    if made.returncode != 0:
        raise SetupError(f"'{sys.executable} -m venv .venv' failed; the lines above say why.")


def provide_ensurepip() -> None:
    """Debian splits `venv` off into a package of its own, which a bare machine lacks."""
    if ensurepip_available():
        return
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if may_use_apt():
        print(f"Installing {package}", flush=True)
        apt_install((package,))
    if not ensurepip_available():
        raise SetupError(f"This Python has no 'venv' module; to get it: sudo apt-get install {package}")


def ensurepip_available() -> bool:
    check = subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return check.returncode == 0


def install(dev: bool) -> None:
    print("Installing pinned dependencies (the first time takes a minute or two)", flush=True)
    pip("install", "--requirement", str(LOCKS[dev]))
    # Editable, so that the environment need not be touched when the code changes.
    pip("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def pip(*arguments: str) -> None:
    command = [venv_python(), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    if subprocess.run(command, stdin=subprocess.DEVNULL, cwd=ROOT, check=False).returncode != 0:
        raise SetupError(
            f"pip could not install {arguments[-1]}; the lines above say why (is a package index within reach?)."
        )


if __name__ == "__main__":
    sys.exit(main())
